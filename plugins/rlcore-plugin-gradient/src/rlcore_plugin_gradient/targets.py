"""Target networks: slower copies of networks that are trained. Losses own them, learners move them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

import torch
from pydantic import BaseModel, Field
from torch import Tensor, nn

from rlcore.errors import RlcoreError
from rlcore.learners import foreach_copy, foreach_lerp


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
        moved: whether the targets moved in the update already, as a compiled one moves them.

    Raises:
        RlcoreError: a source and its target differ in structure.
    """

    def __init__(self, pairs: Iterable[tuple[nn.Module, nn.Module]], interval: int = 1000, tau: float = 1.0) -> None:
        self.interval = interval
        self.tau = tau
        self.steps = 0
        self.moved = False
        self._copy, self._lerp = foreach_copy(), foreach_lerp()
        self._places: list[_Places] = []
        for source, target in pairs:
            _check_alike(source, target)
            target.requires_grad_(False)
            self._places.append(_Places(source, target))

    def step(self) -> None:
        """Count an optimisation step, and update when the interval has passed."""
        due = self.is_due()
        self.steps += 1
        if due and not self.moved:
            self.update()
        self.moved = False

    def is_due(self) -> bool:
        """Return whether the next step moves the targets."""
        return (self.steps + 1) % self.interval == 0

    def tensors(self) -> Iterator[tuple[Tensor, Tensor, float]]:
        """Yield each tensor of the targets with its source, and how far it moves."""
        for places in self._places:
            for moved, by in zip(*places.parameters(), strict=True):
                yield moved, by, self.tau
            for copied, of in zip(*places.buffers(), strict=True):
                yield copied, of, 1.0

    @torch.no_grad()
    def update(self) -> None:
        """Move the targets now."""
        for places in self._places:
            self._move(*places.parameters(), self.tau)
            self._move(*places.buffers(), 1.0)

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


class _Places:
    """Where the tensors of a target and of its source lie in their modules.

    To walk through all modules takes longer than to move the tensors of a small network. What is kept is where a tensor
    is, and not the tensor itself, which loading with `assign=True` replaces.
    """

    def __init__(self, source: nn.Module, target: nn.Module) -> None:
        networks = (target, source)
        self._of_parameters = [_found(network, lambda module: module._parameters) for network in networks]
        self._of_buffers = [_found(network, lambda module: module._buffers) for network in networks]

    def parameters(self) -> tuple[list[Tensor], list[Tensor]]:
        """Return the parameters of the target and those of the source, in one order."""
        target, source = self._of_parameters
        return [owner[name] for owner, name in target], [owner[name] for owner, name in source]

    def buffers(self) -> tuple[list[Tensor], list[Tensor]]:
        """Return the buffers of the target and those of the source, in one order."""
        target, source = self._of_buffers
        return [owner[name] for owner, name in target], [owner[name] for owner, name in source]


def _found(network: nn.Module, kind: Callable[[nn.Module], Any]) -> list[tuple[dict[str, Tensor], str]]:
    """Return the mapping and the name of each tensor of a kind, every tensor once."""
    seen: set[int] = set()
    places: list[tuple[dict[str, Tensor], str]] = []
    for module in network.modules():
        owner: dict[str, Tensor | None] = kind(module)
        for name, tensor in owner.items():
            if tensor is not None and id(tensor) not in seen:
                seen.add(id(tensor))
                places.append((cast("dict[str, Tensor]", owner), name))
    return places


def _check_alike(source: nn.Module, target: nn.Module) -> None:
    shapes, others = ({name: value.shape for name, value in net.state_dict().items()} for net in (source, target))
    differing = [name for name in {**shapes, **others} if shapes.get(name) != others.get(name)]
    if differing:
        raise RlcoreError(
            f"a target network has the structure of its source; {type(source).__name__} and {type(target).__name__} "
            f"differ in {', '.join(differing)}"
        )
