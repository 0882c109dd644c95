"""Target networks: slower copies of networks that are trained. Losses own them, learners move them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from pydantic import BaseModel, Field
from torch import Tensor, nn

from rlcore.errors import RlcoreError
from rlcore.learners.torch_private import foreach_copy, foreach_lerp


class TargetConfig(BaseModel, extra="forbid"):
    """The keys of a loss with target networks; the defaults copy the networks every 1,000 steps."""

    target_interval: int = Field(1000, ge=1, description="optimisation steps between two updates of the target")
    target_tau: float = Field(1.0, gt=0, le=1, description="how far an update moves the target: 1 copies")


class TargetUpdater:
    """Moves target networks towards their sources: `target += tau * (source - target)` every `interval` steps.

    A hard update has `tau = 1` and a long interval (Mnih et al., 2015), a soft one a small `tau` and the interval 1
    (Lillicrap et al., 2016, arXiv 1509.02971, section 3). Buffers, such as running statistics, are copied.

    Args:
        pairs: (source, target), modules of one structure; the targets are frozen.
        interval: calls of `step` between two updates.
        tau: how far an update moves them.

    Attributes:
        interval: as given.
        tau: as given.
        steps: calls of `step` so far.

    Raises:
        RlcoreError: a source and its target differ in structure.
    """

    def __init__(self, pairs: Iterable[tuple[nn.Module, nn.Module]], interval: int = 1000, tau: float = 1.0) -> None:
        self.interval = interval
        self.tau = tau
        self.steps = 0
        self._pairs = list(pairs)
        self._copy, self._lerp = foreach_copy(), foreach_lerp()
        for source, target in self._pairs:
            _check_alike(source, target)
            target.requires_grad_(False)

    def step(self, moved: bool = False) -> None:
        """Count an optimisation step, and update when the interval has passed.

        Args:
            moved: whether the targets moved in the step already, as they do in a compiled one.
        """
        due = self.is_due()
        self.steps += 1
        if due and not moved:
            self.update()

    def is_due(self) -> bool:
        """Return whether the next step moves the targets."""
        return (self.steps + 1) % self.interval == 0

    def tensors(self) -> Iterator[tuple[Tensor, Tensor, float]]:
        """Yield each tensor of the targets with its source, and how far it moves."""
        for source, target in self._pairs:
            for moved, by in zip(target.parameters(), source.parameters(), strict=True):
                yield moved, by, self.tau
            for copied, of in zip(target.buffers(), source.buffers(), strict=True):
                yield copied, of, 1.0

    @torch.no_grad()
    def update(self) -> None:
        """Move the targets now."""
        for source, target in self._pairs:
            self._move(list(target.parameters()), list(source.parameters()), self.tau)
            self._move(list(target.buffers()), list(source.buffers()), 1.0)

    def state_dict(self) -> dict[str, Any]:
        """Return the count of steps; the networks are saved with the model."""
        return {"steps": self.steps}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the count of steps."""
        self.steps = state["steps"]

    def _move(self, targets: list[Tensor], sources: list[Tensor], tau: float) -> None:
        if not targets:  # torch refuses a list of none
            return
        if tau == 1.0:
            self._copy(targets, sources)
        else:
            self._lerp(targets, sources, tau)


def _check_alike(source: nn.Module, target: nn.Module) -> None:
    shapes, others = ({name: value.shape for name, value in net.state_dict().items()} for net in (source, target))
    differing = [name for name in {**shapes, **others} if shapes.get(name) != others.get(name)]
    if differing:
        raise RlcoreError(
            f"a target network has the structure of its source; {type(source).__name__} and {type(target).__name__} "
            f"differ in {', '.join(differing)}"
        )
