"""The gradients of all processes that train together, as one flat vector that each of them sums.

A learner of one process has none of this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rlcore.learners.flat_layout import FlatLayout

if TYPE_CHECKING:
    from rlcore.learners.base import Minimise, Turn
    from rlcore.learners.gradient_step import GradientStep
    from rlcore.types import Group, Key


class JointGradients:
    """Replaces gradients by their mean over the rows of all ranks, and total losses alike.

    The vector holds the gradients of each optimizer, then the total loss of each, then a count of rows. Each rank
    multiplies its numbers by its rows; the sum over the ranks, divided by the sum of the rows, is the mean. A rank
    without rows joins with zeros. What is not finite on one rank is not finite in the sum, so that all ranks skip the
    same steps; all take them from the same bits, so that their weights stay equal. A parameter without a gradient
    counts as one with a gradient of zero: whether another rank has one, nobody knows before the sum.

    Args:
        group: the ranks; each has the same optimizers.
        steps: of each optimizer.

    Attributes:
        layout: where they lie in the vector.
        flat: the vector.
    """

    def __init__(self, group: Group, steps: Sequence[GradientStep]) -> None:
        self._group = group
        self._steps = steps
        self._allocate()

    def around(self, minimise: Minimise, learner: Any) -> Minimise:
        """Return what minimises the losses of the rows that this rank has, or takes the step of the others."""

        def minimise_rows(turn: Turn) -> Mapping[str, Tensor]:
            turn.rows = rows_of(turn.minibatch)
            if turn.rows:
                return minimise(turn)
            self.average(0, turn.due.numbers)
            return learner.apply({})  # type: ignore[no-any-return]

        return minimise_rows

    def average(self, rows: int, due: Sequence[int] | None = None) -> None:
        """Let steps take the gradients of all ranks; the backward of each is done, unless there are no rows.

        Args:
            rows: samples of this rank's minibatch.
            due: the numbers of the optimizers that step, the same on all ranks; None for all.
        """
        due = range(len(self._steps)) if due is None else due
        for step in self._steps:
            step.follow_groups()
        if [len(views) for views in self._gradients] != [len(step.parameters) for step in self._steps]:
            self._allocate()
        if rows:
            # forget what the optimizers that do not step now had in an earlier update
            if len(due) < len(self._steps):
                self.flat.zero_()
            for number in due:
                self._write(number, *self._steps[number].gradients())
        self._sum(rows)
        for number in due:
            self._steps[number].replace(self._gradients[number], self._totals[number])

    def sum_written(self) -> None:
        """Sum what each rank wrote into the vector, where all count as often as they have rows; divided later."""
        self._group.sum_(self.flat)

    def _write(self, number: int, gradients: Sequence[Tensor | None], total: Tensor) -> None:
        """Set what this rank has for an optimizer.

        Args:
            number: of the optimizer.
            gradients: one for each parameter, or None.
            total: its total loss, 0-d.
        """
        for view, gradient in zip(self._gradients[number], gradients, strict=True):
            if gradient is None:
                view.zero_()
            else:
                view.copy_(gradient)
        self._totals[number].copy_(total)

    def _sum(self, rows: int) -> None:
        """Replace the vector by its mean over all ranks; what was written counts as often as there are rows."""
        if rows:
            self._values.mul_(rows)
        else:
            self._values.zero_()
        self._rows.fill_(rows)
        self._group.sum_(self.flat)
        self._values.div_(self._rows)

    def _allocate(self) -> None:
        parameters = [step.parameters for step in self._steps]
        self.layout = FlatLayout(parameters)
        self.flat = torch.zeros(self.layout.length, device=parameters[0][0].device)
        self._values, self._rows = self.flat[:-1], self.flat[-1]
        numbers = range(len(parameters))
        self._gradients = [self.layout.gradients_of(number, self.flat) for number in numbers]
        self._totals = [self.layout.total_of(number, self.flat) for number in numbers]


def rows_of(minibatch: Mapping[Key, Tensor]) -> int:
    """Return how many samples a minibatch has: a `Minibatch`, a TensorDict or a mapping of tensors `[sample, ...]`."""
    size: Any = getattr(minibatch, "batch_size", None)  # for every minibatch, where `offers` would be slow
    if size is not None:
        return prod(size)
    return next(iter(minibatch.values())).shape[0]
