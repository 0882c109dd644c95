"""The buffers that a loss changes, such as running statistics: an update that is not finite leaves them alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from rlcore.errors import ConfigError
from rlcore.learners import Due
from rlcore.types import Group

if TYPE_CHECKING:
    from rlcore.learners import GradientStep, Minimise, Turn


class Statistics:
    """Takes back what a loss did to its buffers, for an eager update; a compiled one has this in its graph.

    Which buffers a loss changes is found out when it is first asked for some losses, by a comparison of all: the
    counts of changes that torch keeps for each tensor do not know of running statistics. Later, copies are made of
    those alone.

    Args:
        loss: a module that contains the model's parts.
        group: the processes that train together.
        steps: of each optimizer.
    """

    def __init__(self, loss: nn.Module, group: Group, steps: Sequence[GradientStep]) -> None:
        self._buffers: dict[str, Tensor] = dict(loss.named_buffers())
        self._steps = steps
        self._several = group.size > 1
        self._moving: dict[Due, dict[str, Tensor]] = {}
        self._before: list[Tensor] = []

    def around(self, minimise: Minimise, learner: Any) -> Minimise:
        """Return what minimises losses, and takes changes of buffers back where a step was not finite.

        Where a hook steps, that is said by the steps that it asks the learner for, and by the losses.
        """

        def minimise_with_statistics(turn: Turn) -> Mapping[str, Tensor]:
            steps = [self._steps[number] for number in turn.due.numbers]
            for step in steps:  # what they say is of an earlier update
                step.not_finite = torch.zeros_like(step.not_finite)
            self._keep(turn.due)
            metrics = minimise(turn)
            minimised = [loss.detach() for name, loss in (turn.losses or {}).items() if name.startswith("loss")]
            wrong = [(~loss.isfinite()).any().float() for loss in minimised]
            self._settle(turn.due, [step.not_finite for step in steps] + wrong)
            return metrics

        return minimise_with_statistics

    def _keep(self, due: Due) -> None:
        """Note the buffers as they are before the loss."""
        self._before = [buffer.clone() for buffer in self._moving.get(due, self._buffers).values()]

    def _settle(self, due: Due, not_finite: Sequence[Tensor]) -> None:
        """Take changes back where a step was not finite.

        Args:
            due: as in `_keep`.
            not_finite: of each step that was due and of each loss, 0-d: 1 where it is wrong.

        Raises:
            ConfigError: several processes train together, of which each would have statistics of its own rows.
        """
        moving = self._moving.get(due)
        if moving is None:
            before = dict(zip(self._buffers, self._before, strict=True))
            moving = self._moving[due] = {name: self._buffers[name] for name in changed(before, self._buffers)}
            self._before = [before[name] for name in moving]
            if moving and self._several:
                refuse_several(moving)
        if not moving:
            return
        bad = torch.stack(list(not_finite)).sum() > 0
        if bad.device.type != "cpu" or bool(bad):  # on a device this would wait for it
            for buffer, kept in zip(moving.values(), self._before, strict=True):
                buffer.copy_(torch.where(bad, kept, buffer))


def changed(before: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> list[str]:
    """Return the names of the tensors that are other ones than before."""
    return [name for name, value in after.items() if not torch.equal(before[name], value)]


def statistics_of(loss: Any, group: Group, steps: Sequence[GradientStep]) -> Statistics | None:
    """Return what looks after the buffers of a loss; None for one without."""
    if not isinstance(loss, nn.Module) or next(loss.buffers(), None) is None:
        return None
    return Statistics(loss, group, steps)


def refuse_several(names: Iterable[str]) -> None:
    """Say that a loss with statistics trains in one process.

    Raises:
        ConfigError: always.
    """
    raise ConfigError(
        f"[loss] changes {', '.join(names)} in each update; of several processes that train together each would have "
        "the statistics of its own rows. Train it in one process, or choose networks without running statistics"
    )
