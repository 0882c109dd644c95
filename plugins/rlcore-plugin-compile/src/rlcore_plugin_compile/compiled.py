"""The optimisation step as one compiled graph: forward, backward, clipping, every optimizer, and the targets.

A graph has fixed shapes: there is one for each size of minibatches and each set of optimizers that step together. What
does not fit runs eagerly, in the learner. What is in a graph stands in `update_graph.py`.
"""

from __future__ import annotations

import logging
import types
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from rlcore.errors import ConfigError
from rlcore.learners import AdamState, Due, JointGradients, TargetUpdater, check_losses, refuse_several, rows_of
from rlcore.types import FoundEntries, Heart, Key, Rows, offers
from rlcore_plugin_compile.cuda_graph import CudaGraph
from rlcore_plugin_compile.direct_calls import DirectCalls
from rlcore_plugin_compile.graph_pass import graph_pass
from rlcore_plugin_compile.own_code import with_own_code
from rlcore_plugin_compile.side_effects import compiled_without_side_effects
from rlcore_plugin_compile.torch_private import look_up
from rlcore_plugin_compile.traced_adam import TracedAdam
from rlcore_plugin_compile.traced_loss import TracedLoss
from rlcore_plugin_compile.update_graph import Joined, NamedBound, UpdateGraph

if TYPE_CHECKING:
    from rlcore.learners import GradientLearner, GradientStep, Minimise, Turn

log = logging.getLogger(__name__)


class Bound(Protocol):
    """Parameters that are kept within a bound, and what maps their values to those within it."""

    @property
    def parameters(self) -> tuple[Tensor, ...]:
        """The parameters as they are now."""
        ...

    @property
    def within(self) -> Callable[[Sequence[Tensor]], list[Tensor]]:
        """The function of their values."""
        ...


@runtime_checkable
class Bounding(Protocol):
    """What moves targets and keeps parameters within bounds besides, after each step and before the targets move.

    Attributes:
        bounds: of parameters.
        kept: whether they are kept in this update already; set by a compiled one, which keeps them itself.
    """

    bounds: Sequence[Bound]
    kept: bool


class CompiledUpdate:
    """Takes optimisation steps through compiled functions.

    Args:
        loss: a module that contains the model's parts.
        steps: by the name of the optimizer, each Adam or AdamW.
        heart: paused while compiling.
        joint: sums gradients over several ranks; the update is then one graph before the sum and one after it.
        targets: of the loss; those that move a little at a time do so in the graph.

    Raises:
        ConfigError: an optimizer other than Adam or AdamW.
    """

    def __init__(
        self,
        loss: nn.Module,
        steps: Mapping[str, GradientStep],
        heart: Heart,
        joint: JointGradients | None = None,
        targets: TargetUpdater | None = None,
    ) -> None:
        unfit = [name for name, step in steps.items() if not AdamState.fits(step.optimizer)]
        if unfit:
            raise ConfigError(
                f"[learner] compile = true works with the optimizers adam and adamw, without amsgrad; {unfit[0]!r} is "
                "another: choose one of them in its [[optimizer]], or set compile = false"
            )
        self._loss = loss
        self._named_steps = steps
        self._heart = heart
        self._joint = joint
        self._targets = targets
        self._pairs = self._target_pairs()
        self._bounding = targets if offers(targets, Bounding) and joint is None else None
        self._traced: dict[Due, TracedLoss] = {}
        self._adams = [TracedAdam(step, name) for name, step in steps.items()]
        self._names: dict[Due, list[str]] = {}  # of what an update returns
        self._functions: dict[tuple[Any, ...], Callable[..., Any]] = {}
        # gathered in the graph, rows save 6 % of an iteration of DQN on CartPole; on a device with graphs of its own,
        # what changes from call to call is copied to where they read it, and there the minibatch gathers
        self._gathers = self._adams[0].adam.step.device.type == "cpu"
        self._columns: Mapping[Key, Tensor] = {}  # of which rows are gathered
        self._without_gradients = torch.no_grad()  # made once: to make it costs more than to enter it

    def reload(self) -> None:
        """Bind to the optimizers' state tensors where loading exchanged them; called in each iteration of a warm-up."""
        loaded = [adam for adam in self._adams if not adam.adam.is_current()]
        for adam in loaded:
            adam.reload()
        if loaded:
            self._functions.clear()

    def fits(self) -> bool:
        """Return whether its steps are all there is to do: nobody watches an optimizer or left a gradient for it."""
        return all(adam.fits() for adam in self._adams)

    def around(self, minimise: Minimise, learner: GradientLearner) -> Minimise:
        """Return what takes a turn by a graph, or eagerly where it does not fit or a hook comes between."""
        targets = None if self._pairs is None else self._targets

        def minimise_compiled(turn: Turn) -> Mapping[str, Tensor]:
            if learner.hooked() or not self.fits():
                return minimise(turn)
            entries = None if self._joint is not None and not rows_of(turn.minibatch) else turn.entries
            moves = targets is not None and turn.due is turn.turns[-1] and targets.is_due()
            metrics = self(entries, turn.due, moves)
            if targets is not None:
                targets.moved = moves
            if self._bounding is not None:
                self._bounding.kept = turn.due is turn.turns[-1]
            return metrics

        return minimise_compiled

    def __call__(self, minibatch: Mapping[Key, Tensor] | None, due: Due, moves: bool) -> dict[str, Tensor]:
        """Take the steps that are due; compiles at the first minibatch of each size.

        Args:
            minibatch: entries by key, those `[sample, ...]` and the noise of the loss, where it has any; None on a rank
                without rows, which takes the steps of the others.
            due: the optimizers that step.
            moves: whether the targets move in the graph.
        """
        if minibatch is None:
            return self._without_rows(due, moves)
        lying = minibatch.rows if self._gathers and isinstance(minibatch, FoundEntries) else None
        traced = self._traced.get(due) or self._trace(minibatch, due, lying)
        for number in due.numbers:
            self._adams[number].follow_lr()
        if lying is None:
            entries = [minibatch[key] for key in traced.keys]
        else:
            entries = self._not_gathered(minibatch, traced, lying)
        rows, gathers = rows_of(minibatch), lying is not None
        with self._without_gradients:
            if self._joint is None:
                function = self._functions.get((rows, due, moves, gathers)) or self._whole(rows, due, moves, gathers)
                values = function(entries)
            else:
                values = self._jointly(self._joint, entries, rows, due, moves, gathers)
        return dict(zip(self._names[due], values, strict=True))

    def _without_rows(self, due: Due, moves: bool) -> dict[str, Tensor]:
        """Take the steps of the other ranks by their kernels, and so with their bits."""
        assert self._joint is not None
        for number in due.numbers:
            self._adams[number].follow_lr()
        self._joint.flat.zero_()
        with torch.no_grad():
            norms = self._step_jointly(self._joint, due, moves)
        return dict(zip(self._norm_names(due), norms, strict=True))

    def _not_gathered(self, minibatch: Mapping[Key, Tensor], traced: TracedLoss, lying: Rows) -> list[Tensor]:
        """Return what a graph that gathers rows is given: entries that are no columns, and the places behind them."""
        columns, places = lying
        if columns is not self._columns:
            self._columns = columns
            self._functions.clear()
        return [*(minibatch[key] for key in traced.keys if key not in columns), places]

    def _norm_names(self, due: Due) -> list[str]:
        if len(self._adams) == 1:
            return ["grad_norm"]
        return [f"grad_norm/{self._adams[number].name}" for number in due.numbers]

    def _trace(self, minibatch: Mapping[Key, Tensor], due: Due, lying: Rows | None) -> TracedLoss:
        """Find out what the loss reads and returns, and refuse one that the optimizers do not fit."""
        if lying is not None:  # the minibatch stays as it is, so that the optimizers of further turns gather too
            columns, places = lying
            minibatch = {key: columns[key][places] if key in columns else minibatch[key] for key in minibatch}
        adams = [self._adams[number] for number in due.numbers]
        parameters = {adam.name: adam.adam.parameters for adam in adams}
        traced = TracedLoss(self._loss, due.names, minibatch, [adam.names for adam in adams], parameters)
        if due.names is None:
            check_losses(self._named_steps, traced.returned)
        if traced.moving and self._joint is not None:
            refuse_several(traced.moving)
        self._traced[due] = traced
        self._names[due] = [*traced.returned, *self._norm_names(due)]
        return traced

    def _jointly(
        self, joint: JointGradients, entries: list[Tensor], rows: int, due: Due, moves: bool, gathers: bool
    ) -> Sequence[Tensor]:
        """Write the gradients of this rank, then take the steps of all."""
        function = self._functions.get((rows, due, gathers)) or self._before_sum(joint, rows, due, gathers)
        values = function(entries)
        return [*values, *self._step_jointly(joint, due, moves)]

    def _step_jointly(self, joint: JointGradients, due: Due, moves: bool) -> Sequence[Tensor]:
        """Sum what the ranks wrote, take the steps by a graph of its own, and return the norms."""
        joint.sum_written()
        function = self._functions.get((due, moves)) or self._after_sum(joint, due, moves)
        return function([])  # type: ignore[no-any-return]

    def _whole(self, rows: int, due: Due, moves: bool, gathers: bool) -> Callable[..., Any]:
        log.info("compiling the update for minibatches of %d: up to a minute, a few seconds once it is cached", rows)
        graph = self._graph(self._traced[due], due, moves, gathers=gathers)
        return self._kept((rows, due, moves, gathers), self._compiled(graph.whole), graph)

    def _before_sum(self, joint: JointGradients, rows: int, due: Due, gathers: bool) -> Callable[..., Any]:
        log.info("compiling the update for minibatches of %d: up to a minute, a few seconds once it is cached", rows)
        joined = Joined(joint, due.numbers, rows)
        graph = self._graph(self._traced[due], due, moves=False, joined=joined, gathers=gathers)
        return self._kept((rows, due, gathers), self._compiled(graph.before_sum), graph)

    def _after_sum(self, joint: JointGradients, due: Due, moves: bool) -> Callable[..., Any]:
        joined = Joined(joint, due.numbers, 0)
        graph = self._graph(None, due, moves, joined)
        return self._kept((due, moves), self._compiled(graph.after_sum), graph)

    def _kept(self, key: tuple[Any, ...], function: Callable[..., Any], graph: UpdateGraph) -> Callable[..., Any]:
        """Keep a function for further calls; the first one compiles."""
        state = graph.state

        def call(entries: list[Tensor]) -> Sequence[Tensor]:
            return function(entries, state)  # type: ignore[no-any-return]

        def first(entries: list[Tensor]) -> Sequence[Tensor]:
            self._functions[key] = call
            with self._heart.pause():
                return compiled_without_side_effects(self._loss, partial(call, entries))

        return first

    def _graph(
        self, traced: TracedLoss | None, due: Due, moves: bool, joined: Joined | None = None, gathers: bool = False
    ) -> UpdateGraph:
        adams = [self._adams[number] for number in due.numbers]
        names = {id(parameter): name for name, parameter in self._loss.named_parameters()}
        of_adams = [[names.get(id(parameter)) for parameter in adam.adam.parameters] for adam in adams]
        optimized = frozenset(name for several in of_adams for name in several)
        others = {name: value.detach() for name, value in self._loss.named_parameters() if name not in optimized}
        buffers = dict(self._loss.named_buffers())
        pairs = (self._pairs or []) if moves else []
        columns: dict[Key, Tensor] | None = None
        if gathers:
            assert traced is not None
            columns = {key: self._columns[key] for key in traced.keys if key in self._columns}
        return UpdateGraph(traced, adams, of_adams, others, buffers, pairs, joined, columns, self._bounds(optimized))

    def _bounds(self, optimized: frozenset[str | None]) -> list[NamedBound]:
        """Return the bounds of the parameters that a graph steps, with these by their names in the loss."""
        if self._bounding is None:
            return []
        names = {id(parameter): name for name, parameter in self._loss.named_parameters()}
        bounds = self._bounding.bounds
        named = [(tuple(names[id(each)] for each in bound.parameters), bound.within) for bound in bounds]
        return [(several, within) for several, within in named if optimized.issuperset(several)]

    def _target_pairs(self) -> list[tuple[str, str, float]] | None:
        """Return the names of targets and sources, with how far a target moves; None where it is better done outside.

        A copy after many updates would be a second graph for little; and the loss may not have all of the networks.
        """
        targets = self._targets
        if targets is None or (targets.tau == 1 and targets.interval > 1):
            return None
        names = {id(tensor): name for name, tensor in (*self._loss.named_parameters(), *self._loss.named_buffers())}
        pairs = [(names.get(id(target)), names.get(id(source)), tau) for target, source, tau in targets.tensors()]
        return [pair for pair in pairs if None not in pair] if all(None not in pair for pair in pairs) else None  # type: ignore[misc]

    def _compiled(self, method: Any) -> Callable[..., Any]:
        device = self._adams[0].adam.step.device
        options: dict[str, Any] = {}
        if device.type == "cpu":
            options["cpp_wrapper"] = True  # calls the kernels from C++: Python would cost more than they do
            options["post_grad_custom_post_pass"] = graph_pass()
        no_guards = look_up(torch.compiler, "skip_all_guards_unsafe")
        # The guards compare before each call what this class fixes: one function per size, and tensors that are never
        # exchanged. A torch without the option keeps them.
        further = {} if no_guards is None else {"guard_filter_fn": no_guards}
        if device.type == "cpu":
            return DirectCalls(_own_copy(method), options, further)
        function = torch.compile(_own_copy(method), fullgraph=True, dynamic=False, options=options | further)
        return CudaGraph(function) if device.type == "cuda" and self._joint is None else function


def _own_copy(method: Any) -> Callable[..., Any]:
    """Return a method that without guards does not get the graph of a second learner or size."""
    return types.MethodType(with_own_code(method.__func__), method.__self__)
