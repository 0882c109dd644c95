"""One update as a function of tensors, for the compiler: losses, gradients, steps, statistics and targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import torch
from torch import Tensor

from rlcore.learners import total_loss
from rlcore.types import Key

if TYPE_CHECKING:
    from rlcore.learners import JointGradients
    from rlcore_plugin_compile.traced_adam import TracedAdam
    from rlcore_plugin_compile.traced_loss import TracedLoss

# tensors in lists: those of each optimizer, then parameters that no optimizer moves, buffers, columns of which rows are
# gathered, and the vector of ranks
State = list[list[Tensor]]
# parameters by their names in the loss, and what maps their values to those within a bound
NamedBound: TypeAlias = tuple[tuple[str, ...], Callable[[Sequence[Tensor]], list[Tensor]]]
_OF_ADAM = 4


class Joined(NamedTuple):
    """How the gradients of several ranks become one.

    Attributes:
        joint: has the vector that is summed over them.
        numbers: of the optimizers that step.
        rows: samples of a minibatch of this rank.
    """

    joint: JointGradients
    numbers: Sequence[int]
    rows: int


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
        joined: of several ranks; None for one.
        columns: of the entries that the loss reads, those that are given as all rows `[row, *shape]` of which the graph
            gathers some. Its functions take the places `[sample]` behind the other entries then.
        bounds: of parameters, kept after the steps and before the targets move.

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
        joined: Joined | None = None,
        columns: Mapping[Key, Tensor] | None = None,
        bounds: Sequence[NamedBound] = (),
    ) -> None:
        self._traced = loss
        self._moving = () if loss is None else loss.moving
        self._adams = tuple(adams)
        self._names = tuple(tuple(several) for several in names)
        self._others, self._buffers = tuple(others), tuple(buffers)
        self._moves = tuple(moves)
        self._bounds = tuple(bounds)
        self.state: State = [tensors for adam in adams for tensors in adam.tensors()]
        self._gathered = None if columns is None else tuple(columns)
        self._given = () if loss is None else tuple(key for key in loss.keys if key not in (columns or {}))
        self.state += [list(others.values()), list(buffers.values()), list((columns or {}).values())]
        self._joined = joined
        if joined is not None:
            self.state.append([joined.joint.flat])

    def whole(self, entries: list[Tensor], state: State) -> tuple[Tensor, ...]:
        """Do all of it; return what the loss returns and the norm of each optimizer."""
        gradients, totals, values, moved = self._gradients(entries, state)
        return (*values, *self._steps(gradients, totals, moved, state))

    def before_sum(self, entries: list[Tensor], state: State) -> tuple[Tensor, ...]:
        """Several ranks: write gradients and total losses of this one into their vector; return losses and metrics."""
        gradients, totals, values, _ = self._gradients(entries, state)
        joined = self._joined
        assert joined is not None
        flat, numbers = self._flat(state), joined.numbers
        of_totals = dict(zip(numbers, totals, strict=True))
        of_gradients = dict(zip(numbers, gradients, strict=True))
        flat.copy_(joined.joint.layout.joined(of_gradients, of_totals, joined.rows, flat))
        return tuple(values)

    def after_sum(self, entries: list[Tensor], state: State) -> tuple[Tensor, ...]:
        """Take the steps with the mean over the rows of all ranks; there are no entries. Return the norms."""
        joined = self._joined
        assert joined is not None
        flat, layout = self._flat(state), joined.joint.layout
        mean = flat / flat[-1]
        gradients = [layout.gradients_of(number, mean) for number in joined.numbers]
        totals = [layout.total_of(number, mean) for number in joined.numbers]
        return tuple(self._steps(gradients, totals, [], state))

    def _flat(self, state: State) -> Tensor:
        """Return the vector of all ranks."""
        return state[_OF_ADAM * len(self._adams) + 3][0]

    def _entries(self, entries: list[Tensor], state: State) -> dict[Key, Tensor]:
        """Return what the loss reads, by key."""
        if self._gathered is None:
            return dict(zip(self._given, entries, strict=True))
        *whole, places = entries
        columns = state[_OF_ADAM * len(self._adams) + 2]
        ungathered = dict(zip(self._given, whole, strict=True))
        return ungathered | {key: column[places] for key, column in zip(self._gathered, columns, strict=True)}

    def _gradients(
        self, entries: list[Tensor], state: State
    ) -> tuple[list[list[Tensor]], list[Tensor], list[Tensor], list[Tensor]]:
        """Return gradients and total loss of each optimizer, what the loss returns, and what it moved."""
        assert self._traced is not None
        numbers = list(range(len(self._adams)))
        gradients: list[list[Tensor]] = []
        totals: list[Tensor] = []
        for chosen in [numbers] if self._traced.apart else [[number] for number in numbers]:
            of_losses, (these, returned, changed) = self._gradients_of(chosen, entries, state)
            gradients += of_losses
            totals += these
            if chosen[0] == 0:  # of further passes all this is the same
                values, moved = returned, changed
        return gradients, totals, values, moved

    def _gradients_of(
        self, chosen: list[int], entries: list[Tensor], state: State
    ) -> tuple[list[list[Tensor]], tuple[list[Tensor], list[Tensor], list[Tensor]]]:
        traced, fixed = self._traced, self._named(state)
        assert traced is not None
        read = self._entries(entries, state)

        def total(parameters: list[list[Tensor]]) -> tuple[Tensor, tuple[list[Tensor], list[Tensor], list[Tensor]]]:
            tensors = dict(fixed)
            for number, values in zip(chosen, parameters, strict=True):
                tensors |= self._by_name(number, values)
            # a transform of gradients refuses changes to what is not its own
            moving = {name: fixed[name].clone() for name in traced.moving}
            tensors |= moving
            losses = traced.computed(read, tensors)
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
            norm, stepped = adam.step(gradients[number], totals[number], tensors)
            norms.append(norm)
            finite.append(stepped)
        named = self._named(state)
        for name, value in zip(self._moving, moved, strict=True):
            named[name].copy_(torch.where(torch.stack(finite).all(), value, named[name]))
        for parameters, within in self._bounds:
            values = within([named[parameter] for parameter in parameters])
            for parameter, kept in zip(parameters, values, strict=True):
                named[parameter].copy_(kept)
        for target, source, tau in self._moves:
            if tau < 1:
                named[target].add_(tau * (named[source] - named[target]))
            else:
                named[target].copy_(named[source])
        return norms

    def _named(self, state: State) -> dict[str, Tensor]:
        """Return every parameter and buffer of the loss by name."""
        others, buffers = state[_OF_ADAM * len(self._adams) :][:2]
        named = dict(zip(self._others, others, strict=True))
        named |= dict(zip(self._buffers, buffers, strict=True))
        for number in range(len(self._adams)):
            named |= self._by_name(number, state[_OF_ADAM * number])
        return named

    def _by_name(self, number: int, values: list[Tensor]) -> dict[str, Tensor]:
        pairs = zip(self._names[number], values, strict=True)
        return {name: value for name, value in pairs if name is not None}
