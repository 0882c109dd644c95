"""One update as a function of tensors, for the compiler: losses, gradients, steps, statistics and targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rlcore.learners.gradient_step import total_loss

if TYPE_CHECKING:
    from rlcore.learners.traced_adam import TracedAdam
    from rlcore.learners.traced_loss import TracedLoss

# tensors in lists: those of each optimizer, then parameters that no optimizer moves, then buffers
State = list[list[Tensor]]
_OF_ADAM = 4


class UpdateGraph:
    """The update of some optimizers. Its functions read and change tensors of `state`, and no other.

    Buffers that the loss changes, such as running statistics, keep their change where all steps were finite.

    Args:
        loss: what is asked of the loss; None where gradients come from elsewhere.
        adams: the optimizers that step.
        names: for each of them the names of its parameters in the loss, None for one that is not in it.
        others: names and tensors of the parameters of the loss that are in none of them.
        buffers: names and tensors of the buffers of the loss.
        moves: pairs (target, source) of names of tensors that move after the steps, with how far they do.

    Attributes:
        state: to be handed to the functions as it is.
    """

    def __init__(
        self,
        loss: TracedLoss | None,
        adams: Sequence[TracedAdam],
        names: Sequence[Sequence[str | None]],
        others: dict[str, Tensor],
        buffers: dict[str, Tensor],
        moves: Sequence[tuple[str, str, float]],
    ) -> None:
        self._traced = loss
        self._moving = () if loss is None else loss.moving
        self._adams = tuple(adams)
        self._names = tuple(tuple(several) for several in names)
        self._others, self._buffers = tuple(others), tuple(buffers)
        self._moves = tuple(moves)
        self.state: State = [tensors for adam in adams for tensors in adam.tensors()]
        self.state += [list(others.values()), list(buffers.values())]

    def whole(self, entries: list[Tensor], state: State) -> tuple[Tensor, ...]:
        """Do all of it; return what the loss returns and the norm of each optimizer."""
        gradients, totals, values, moved = self._gradients(entries, state)
        return (*values, *self._steps(gradients, totals, moved, state))

    def before_sum(
        self, entries: list[Tensor], state: State
    ) -> tuple[tuple[Tensor, ...], list[Tensor], list[list[Tensor]]]:
        """Several ranks: return losses and metrics, the total loss of each optimizer, and its gradients in this one."""
        gradients, totals, values, _ = self._gradients(entries, state)
        return tuple(values), totals, gradients

    def after_sum(self, gradients: list[list[Tensor]], totals: list[Tensor], state: State) -> list[Tensor]:
        """Take the steps with the gradients and the total losses of all ranks, and return the norms."""
        return self._steps(gradients, totals, [], state)

    def _gradients(
        self, entries: list[Tensor], state: State
    ) -> tuple[list[list[Tensor]], list[Tensor], list[Tensor], list[Tensor]]:
        """Return gradients and total loss of each optimizer, what the loss returns, and what it moved."""
        assert self._traced is not None
        numbers = list(range(len(self._adams)))
        gradients: list[list[Tensor]] = []
        totals: list[Tensor] = []
        for chosen in [numbers] if self._traced.apart else [[number] for number in numbers]:
            found, (these, returned, changed) = self._gradients_of(chosen, entries, state)
            gradients += found
            totals += these
            if chosen[0] == 0:  # of further passes all this is the same
                values, moved = returned, changed
        return gradients, totals, values, moved

    def _gradients_of(
        self, chosen: list[int], entries: list[Tensor], state: State
    ) -> tuple[list[list[Tensor]], tuple[list[Tensor], list[Tensor], list[Tensor]]]:
        traced, fixed = self._traced, self._named(state)
        assert traced is not None

        def total(parameters: list[list[Tensor]]) -> tuple[Tensor, tuple[list[Tensor], list[Tensor], list[Tensor]]]:
            tensors = dict(fixed)
            for number, values in zip(chosen, parameters, strict=True):
                tensors |= self._by_name(number, values)
            # a transform of gradients refuses changes to what is not its own
            moving = {name: fixed[name].clone() for name in traced.moving}
            tensors |= moving
            losses = traced.computed(dict(zip(traced.keys, entries, strict=True)), tensors)
            totals = [total_loss(losses, self._adams[number].names) for number in chosen]
            return sum(totals[1:], totals[0]), (totals, list(losses.values()), list(moving.values()))

        values = [state[_OF_ADAM * number] for number in chosen]
        return torch.func.grad(total, has_aux=True)(values)  # type: ignore[no-any-return]

    def _steps(
        self, gradients: Sequence[Sequence[Tensor]], totals: Sequence[Tensor], moved: Sequence[Tensor], state: State
    ) -> list[Tensor]:
        norms: list[Tensor] = []
        finite: list[Tensor] = []
        for number, adam in enumerate(self._adams):
            tensors = state[_OF_ADAM * number : _OF_ADAM * (number + 1)]
            norm, taken = adam.step(gradients[number], totals[number], tensors)
            norms.append(norm)
            finite.append(taken)
        named = self._named(state)
        for name, value in zip(self._moving, moved, strict=True):
            named[name].copy_(torch.where(torch.stack(finite).all(), value, named[name]))
        for target, source, tau in self._moves:
            if tau < 1:
                named[target].add_(tau * (named[source] - named[target]))
            else:
                named[target].copy_(named[source])
        return norms

    def _named(self, state: State) -> dict[str, Tensor]:
        """Return every parameter and buffer of the loss by name."""
        named = dict(zip(self._others, state[-2], strict=True))
        named |= dict(zip(self._buffers, state[-1], strict=True))
        for number in range(len(self._adams)):
            named |= self._by_name(number, state[_OF_ADAM * number])
        return named

    def _by_name(self, number: int, values: list[Tensor]) -> dict[str, Tensor]:
        pairs = zip(self._names[number], values, strict=True)
        return {name: value for name, value in pairs if name is not None}
