"""Which optimizers step in an update, and which losses they ask for."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import nn

from rlcore.errors import ConfigError, did_you_mean
from rlcore.learners import Due
from rlcore.types import Loss, PacedOptimizer, part_of, with_defaults

if TYPE_CHECKING:
    from torch import Tensor

    from rlcore.learners import GradientStep


class Paces:
    """Says what is due in each update.

    Args:
        loss: its losses are asked for by name where it is separable.
        steps: of each optimizer.

    Attributes:
        loss_names: of the loss; None for one that computes all of its losses.
        in_turn: whether each optimizer sees the weights that the one before it left.
    """

    def __init__(self, loss: Any, steps: Sequence[GradientStep]) -> None:
        self.loss_names: tuple[str, ...] | None = tuple(loss.loss_names) if is_separable(loss) else None
        self._everies = tuple(step.every for step in steps)
        self._losses = tuple(step.names for step in steps)
        self._turns: dict[tuple[int, ...], tuple[Due, ...]] = {}
        self.in_turn = takes_turns(loss) and all(self._losses)
        self._always = self._turns_of(tuple(range(len(steps)))) if set(self._everies) <= {1} else None

    def at(self, update: int) -> tuple[Due, ...]:
        """Return what is due in an update, one after the other: mostly once, nothing where no optimizer steps.

        Args:
            update: its number, counted from 1 over the whole run.
        """
        if self._always is not None:
            return self._always
        numbers = tuple([number for number, every in enumerate(self._everies) if not update % every])
        if numbers not in self._turns:
            self._turns[numbers] = self._turns_of(numbers)
        return self._turns[numbers]

    def _turns_of(self, numbers: tuple[int, ...]) -> tuple[Due, ...]:
        several = [numbers] if numbers else []
        if self.in_turn:
            several = [(number,) for number in sorted(numbers, key=self._place)]
        return tuple(Due(together, self._names(together)) for together in several)

    def _place(self, number: int) -> int:
        """Return where the first loss of an optimizer stands among those of the loss."""
        assert self.loss_names is not None
        return min(self.loss_names.index(name) for name in self._losses[number])

    def _names(self, numbers: tuple[int, ...]) -> tuple[str, ...] | None:
        if self.loss_names is None:
            return None
        chosen = [self._losses[number] for number in numbers]
        if not all(chosen):  # one of them minimises all
            return self.loss_names
        return tuple(name for name in self.loss_names if any(name in names for names in chosen))


def is_separable(loss: Any) -> bool:
    """Return whether a loss can be asked for some of its losses.

    A subclass of one that can, whose own `forward` takes a minibatch alone, cannot.
    """
    if not with_defaults(loss, Loss).loss_names:
        return False
    try:
        inspect.signature(loss.forward if isinstance(loss, nn.Module) else loss).bind(None, None)
    except TypeError:
        return False
    return True


def takes_turns(loss: Any) -> bool:
    """Return whether the losses of one follow each other, each at the weights that the step before left."""
    return bool(with_defaults(loss, Loss).in_turn) and is_separable(loss)


def every_of(optimizer: Any) -> int:
    """Return how many updates there are to a step of an optimizer."""
    return with_defaults(optimizer, PacedOptimizer).every


def losses_of(optimizer: Any) -> tuple[str, ...]:
    """Return the losses that an optimizer minimises; none for all of them."""
    return with_defaults(optimizer, PacedOptimizer).losses


def check_optimizers(steps: Mapping[str, GradientStep]) -> None:
    """Refuse optimizers that take each other's steps.

    Raises:
        ConfigError: two have a parameter in common, or minimise one loss although they name theirs.
    """
    owner: dict[int, str] = {}
    minimised: dict[str, str] = {}
    for name, step in steps.items():
        for parameter in step.parameters:
            if id(parameter) in owner:
                raise ConfigError(
                    f"[optimizer] parameters: {owner[id(parameter)]!r} and {name!r} both move "
                    f"{_called(parameter, step)}; name in each the parts that it alone moves. Parts that share it, as "
                    "by [model] share_encoder, need one optimizer for all of them"
                )
            owner[id(parameter)] = name
        for loss in step.names:
            if loss in minimised:
                raise ConfigError(
                    f"[optimizer] losses: {minimised[loss]!r} and {name!r} both minimise {loss!r}; name it in one"
                )
            minimised[loss] = name


def check_losses(steps: Mapping[str, GradientStep], returned: Collection[str]) -> None:
    """Refuse names of losses that are not returned, and losses that no optimizer minimises, or two.

    Optimizers that all go without `losses` minimise the same sum, each with its own parameters.

    Args:
        steps: by the name of the optimizer.
        returned: every `loss_*` of the loss.

    Raises:
        ConfigError: there is such a name.
    """
    for step in steps.values():
        for loss in step.names:
            if loss not in returned:
                raise ConfigError(f"[optimizer] losses: the loss returns no {loss!r}{did_you_mean(loss, returned)}")
    naming = {loss: name for name, step in steps.items() for loss in step.names}
    of_all = [name for name, step in steps.items() if not step.names]
    if naming and of_all:
        loss, name = next(iter(naming.items()))
        raise ConfigError(
            f"[optimizer] losses: {name!r} and {of_all[0]!r} both minimise {loss!r}, as one without the key `losses` "
            f"minimises all; name those of {of_all[0]!r}"
        )
    left = [loss for loss in returned if loss.startswith("loss_") and loss not in naming]
    if left and not of_all:
        raise ConfigError(
            f"[optimizer] losses: no optimizer minimises {left[0]!r}; add it to the key `losses` of one, or another "
            "[[optimizer]]"
        )


def check_trained(steps: Mapping[str, GradientStep], loss: Any, model: Any) -> None:
    """Refuse optimizers that minimise losses of parts which they do not move.

    Args:
        steps: by the name of the optimizer.
        loss: says which parts its losses train, or nothing.
        model: has the parts.

    Raises:
        ConfigError: names each such optimizer with its losses.
    """
    trains = with_defaults(loss, Loss).trains
    ids = {part: {id(parameter) for parameter in part_of(model, part).parameters()} for part in model.parts()}
    problems = []
    for name, step in steps.items():
        moved = {id(parameter) for parameter in step.parameters}
        own = [part for part in ids if ids[part] & moved]
        for trained, parts in ((each, trains[each]) for each in step.names if each in trains):
            if not any(part in own for part in parts):
                problems.append(
                    f"{name!r} minimises {trained}, which trains {' and '.join(parts)}, and moves {', '.join(own)}"
                )
    if problems:
        raise ConfigError(
            f"[optimizer] parameters: {'; '.join(problems)}; name in each the parts that its losses train"
        )


def _called(parameter: Tensor, step: GradientStep) -> str:
    """Return the name of a parameter of an optimizer, where it knows any."""
    for group in step.optimizer.param_groups:
        for name, other in zip(group.get("param_names", ()), group["params"], strict=False):
            if other is parameter:
                return repr(name)
    return f"a parameter of {list(parameter.shape)}"
