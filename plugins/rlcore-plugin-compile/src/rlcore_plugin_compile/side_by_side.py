"""Losses that share no parameters, each with its backward on a thread of its own.

Autograd takes the gradients of separate graphs on separate threads, and torch releases the GIL in its kernels
and for the whole of a backward; so two cores share an update. Every number is computed by the same kernels in the same
order as on one thread, and so has the same bits: it is a question of time alone. An update of PPO on
InvertedDoublePendulum takes 1.50 ms instead of 2.12 (`benchmarks/results/parallel.md`). Where it cannot be, or was
slower in the first updates, one loss follows the other.
"""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import Tensor, nn

from rlcore.errors import ConfigError
from rlcore.learners import is_separable, takes_turns, total_loss, trained_layers
from rlcore.process import usable_cores
from rlcore.types import Loss, with_defaults
from rlcore_plugin_compile.side_threads import SideThread, run_side_by_side

if TYPE_CHECKING:
    from rlcore.learners import Due, GradientLearner, GradientStep, Minimise, Turn
    from rlcore.types import Context, Key

log = logging.getLogger(__name__)

# of each way, before the faster one is kept; and how many of them are not counted, in which caches and threads start
_TRIED: Final = 12
_COLD: Final = 3
# the part of the time that must be saved
_WORTH: Final = 0.95


@dataclass(frozen=True)
class _Side:
    """What one thread does in an update.

    Attributes:
        names: the losses that it computes.
        steps: the optimizers whose gradients it takes; none where one optimizer minimises the losses of all sides.
    """

    names: tuple[str, ...]
    steps: tuple[int, ...]


@dataclass(frozen=True)
class _Plan:
    """How an update with certain losses is split.

    Attributes:
        sides: for each thread; empty where all of it is done on one.
        keys: what the loss returns, in its order.
    """

    sides: tuple[_Side, ...]
    keys: tuple[str, ...]


class SideBySide:
    """Takes the losses and gradients of an update on several threads, or on one where that is faster.

    Args:
        loss: which declares its sides.
        steps: of each optimizer.
        wanted: whether it is done even where it is slower; otherwise the first updates are timed both ways.

    Attributes:
        over: why nothing is done side by side any more; None while it is.
    """

    def __init__(self, loss: Any, steps: Sequence[GradientStep], wanted: bool) -> None:
        self.over: str | None = None
        self._loss = loss
        self._sides: tuple[tuple[str, ...], ...] = tuple(tuple(side) for side in with_defaults(loss, Loss).sides)
        self._steps = steps
        self._wanted = wanted
        self._plans: dict[Due, _Plan] = {}
        self._threads = [SideThread() for _ in self._sides[1:]]
        self._trial: _Trial | None = None if wanted else _Trial()
        self._said = False

    def around(self, minimise: Minimise, learner: GradientLearner) -> Minimise:
        """Return what takes a turn side by side, or as before where that is over or a hook comes between."""

        def minimise_beside(turn: Turn) -> Mapping[str, Tensor]:
            if self.over is not None or learner.hooked():
                return minimise(turn)
            return learner.apply(self.take(turn.entries, turn.due))

        return minimise_beside

    def take(self, entries: Mapping[Key, Tensor], due: Due) -> dict[str, Tensor]:
        """Take losses and gradients, and leave these in the steps; return losses and metrics, detached.

        Args:
            entries: the minibatch and the noise of the loss.
            due: the optimizers that step, and their losses.

        Raises:
            ConfigError: it is wanted, and cannot be.
        """
        plan = self._plans.get(due)
        if plan is None:
            return self._first(entries, due)
        if not plan.sides or not _is_plain():
            return self._one_after_the_other(entries, due)[0]
        trial = self._trial
        if trial is None:
            if not self._said:
                self._say(f"on {len(plan.sides)} threads")
            return self._beside(entries, due, plan)
        beside = trial.beside
        began = time.perf_counter()
        metrics = self._beside(entries, due, plan) if beside else self._one_after_the_other(entries, due)[0]
        trial.add(time.perf_counter() - began)
        if trial.is_over:
            self._decide(trial, len(plan.sides))
        return metrics

    def close(self) -> None:
        """Let the threads end."""
        for thread in self._threads:
            thread.close()

    def _first(self, entries: Mapping[Key, Tensor], due: Due) -> dict[str, Tensor]:
        """Take an update on one thread, and see which parameters its losses lead to."""
        buffers = [(buffer, buffer._version) for buffer in self._loss.buffers()]
        plan: list[_Plan] = []

        def see(losses: Mapping[str, Tensor]) -> None:
            changed = any(buffer._version != version for buffer, version in buffers)
            plan.append(self._plan(losses, due, changed))

        metrics, _ = self._one_after_the_other(entries, due, see)
        self._plans[due] = plan[0]
        return metrics

    def _plan(self, losses: Mapping[str, Tensor], due: Due, changed: bool) -> _Plan:
        keys = tuple(losses)
        asked = [tuple(name for name in side if name in (due.names or ())) for side in self._sides]
        asked = [names for names in asked if names]
        if len(asked) < 2:
            return _Plan((), keys)
        reason = "computing them changes a buffer of the loss or the model" if changed else _shared(losses, asked)
        minimised = [set(self._steps[number].names) for number in due.numbers]
        if len(self._steps) == 1:
            sides = [_Side(names, ()) for names in asked]
        else:
            sides = [
                _Side(
                    names,
                    tuple(n for n, sums in zip(due.numbers, minimised, strict=True) if sums and sums <= set(names)),
                )
                for names in asked
            ]
            if sum(len(side.steps) for side in sides) < len(due.numbers):
                reason = reason or "an optimizer minimises losses of two sides"
        if reason is None:
            return _Plan(tuple(sides), keys)
        if self._wanted:
            raise ConfigError(
                f"[learner] parallel = true: the losses of this update cannot be computed at the same time: {reason}; "
                "leave the key out, or set it to false"
            )
        self._end(reason)
        return _Plan((), keys)

    def _one_after_the_other(
        self, entries: Mapping[Key, Tensor], due: Due, see: Callable[[Mapping[str, Tensor]], None] | None = None
    ) -> tuple[dict[str, Tensor], Mapping[str, Tensor]]:
        losses = self._loss(entries, due.names)
        if see is not None:
            see(losses)
        alone = len(self._steps) == 1
        for number in due.numbers:
            self._steps[number].backward(losses, alone, last=number == due.numbers[-1])
        return {name: value.detach() for name, value in losses.items()}, losses

    def _beside(self, entries: Mapping[Key, Tensor], due: Due, plan: _Plan) -> dict[str, Tensor]:
        tasks = [partial(self._side, entries, side) for side in plan.sides]
        try:
            results: dict[str, Tensor] = {}
            for part in run_side_by_side(tasks, self._threads[: len(tasks) - 1]):
                results |= part
        except BaseException:
            for number in due.numbers:  # another side may be through with its backward
                self._steps[number].forget()
            raise
        metrics = {key: results[key] for key in plan.keys}
        if len(self._steps) == 1:
            self._steps[0].note(metrics)
        return metrics

    def _side(self, entries: Mapping[Key, Tensor], side: _Side) -> dict[str, Tensor]:
        """Take losses and gradients of one side, on whatever thread this runs."""
        losses = self._loss(entries, side.names)
        if side.steps:
            for number in side.steps:
                self._steps[number].backward(losses, False, last=number == side.steps[-1])
        else:
            total_loss(losses, side.names).backward()  # type: ignore[no-untyped-call]
        return {name: value.detach() for name, value in losses.items()}

    def _decide(self, trial: _Trial, threads: int) -> None:
        alone, beside = trial.medians()
        self._trial = None
        if beside < _WORTH * alone:
            self._say(
                f"on {threads} threads, {beside * 1e3:.2f} ms for losses and gradients instead of {alone * 1e3:.2f}"
            )
            return
        self._end(f"{beside * 1e3:.2f} ms for losses and gradients on {threads} threads, {alone * 1e3:.2f} on one")

    def _end(self, reason: str) -> None:
        log.debug("the losses of an update are computed one after the other: %s", reason)
        self.over = reason
        self.close()

    def _say(self, how: str) -> None:
        self._said = True
        log.debug("the losses of an update are computed side by side %s ([learner] parallel)", how)


class _Trial:
    """Times the two ways of an update, in turn."""

    def __init__(self) -> None:
        self.beside = False
        self._seconds: dict[bool, list[float]] = {False: [], True: []}

    def add(self, seconds: float) -> None:
        """Note how long the update took in the way that was its turn."""
        self._seconds[self.beside].append(seconds)
        self.beside = not self.beside

    @property
    def is_over(self) -> bool:
        """Whether both were tried often enough."""
        return len(self._seconds[True]) == _TRIED

    def medians(self) -> tuple[float, float]:
        """Return the seconds of an update on one thread, and on several."""
        return statistics.median(self._seconds[False][_COLD:]), statistics.median(self._seconds[True][_COLD:])


def side_by_side(
    wanted: bool | None, loss: Any, steps: Sequence[GradientStep], context: Context, hooked: bool, compiled: bool
) -> SideBySide | None:
    """Return what takes the gradients on several threads, or None where one does all.

    Args:
        wanted: whether the config asks for it; None leaves it open.
        loss: of the learner.
        steps: of each optimizer.
        context: of the learner.
        hooked: whether a hook comes between loss and step.
        compiled: whether the update is compiled.

    Raises:
        ConfigError: it is asked for and cannot be.
    """
    if wanted is False:
        return None
    reason = "compile = true makes one graph of all losses" if compiled else _obstacle(loss, context, hooked)
    if reason is not None:
        if wanted:
            raise ConfigError(
                f"[learner] parallel = true: {reason}, so that the losses of an update cannot be computed at the same "
                "time; leave the key out, or set it to false"
            )
        return None
    cores = usable_cores()
    if wanted and cores < 2:
        log.warning("[learner] parallel: this process may use one core, so that the threads take turns")
    # each side computes with all of torch's threads; where they outnumber the cores, they wait for each other, and a
    # few updates are too short a time to see it
    if not wanted and cores < 2 * torch.get_num_threads():
        return None
    return SideBySide(loss, steps, bool(wanted))


def _obstacle(loss: Any, context: Context, hooked: bool) -> str | None:
    if len(with_defaults(loss, Loss).sides) < 2 or not is_separable(loss):
        return f"{type(loss).__name__} declares no `sides` of which each can be computed alone"
    if takes_turns(loss):
        return f"the losses of {type(loss).__name__} follow each other ([loss] in_turn = true)"
    if not isinstance(loss, nn.Module):
        return f"{type(loss).__name__} is no torch.nn.Module, so that nobody knows its buffers"
    if context.device.type != "cpu":
        return f"the model is on {context.device}, which has queues of its own"
    if context.group.size > 1:
        return "several processes train together, which share the cores already"
    if trained_layers(loss):
        return "layers of the model, such as dropout, may draw from one generator"
    if hooked:
        return "a hook comes between loss and step, and sees the losses of all"
    return None


def _is_plain() -> bool:
    """Return whether this thread computes as a new one does: torch keeps these settings by thread."""
    return torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")


def _shared(losses: Mapping[str, Tensor], sides: Sequence[tuple[str, ...]]) -> str | None:
    """Return which sides lead to the same parameters, or None."""
    reached = [_leaves([losses[name] for name in side]) for side in sides]
    for number, first in enumerate(reached):
        for other, second in enumerate(reached[:number]):
            common = first & second
            if common:
                return f"{sides[other][0]!r} and {sides[number][0]!r} share {len(common)} parameters"
    return None


def _leaves(values: Sequence[Tensor]) -> set[int]:
    """Return the parameters that values have gradients for."""
    leaves: set[int] = set()
    visited: set[Any] = set()
    waiting = [value.grad_fn for value in values]
    while waiting:
        node: Any = waiting.pop()
        if node is None or node in visited:
            continue
        visited.add(node)
        if type(node).__name__ == "AccumulateGrad":
            leaves.add(id(node.variable))
        waiting.extend(following for following, _ in node.next_functions)
    return leaves
