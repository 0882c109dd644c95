"""The operations of `Trainer.register_op`: a table of destinations, and the hooks that call the operations.

An operation has the arguments and the return value of TorchRL's trainer at the same destination; a return value of a
wrong type is an error. Operations are called after the hooks of the config, in the order of registration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

from rlcore.errors import EndOfEpoch, HookError, did_you_mean
from rlcore.hooks.points import Hook, LoopHooks, call
from rlcore.hooks.resolution import Implementation
from rlcore.hooks.specs import hookimpl
from rlcore.types.hook_parts import HookObject
from rlcore.types.mappings import detached, is_mapping
from rlcore.types.part import defines

Operation = Callable[..., Any]
Clipping = Callable[[], tuple[bool, float | None]]


def _with_nothing(operation: Operation) -> Operation:
    def notify() -> None:
        operation()

    return notify


def _with_batch(operation: Operation) -> Operation:
    return lambda batch: operation(batch)


def _to_minibatch(operation: Operation) -> Operation:
    def process(minibatch: Any) -> Any:
        try:
            return operation(minibatch)
        except StopIteration:  # as in TorchRL
            raise EndOfEpoch from None

    return process


def _with_minibatch(operation: Operation) -> Operation:
    return lambda minibatch: operation(minibatch)


def _to_losses(operation: Operation) -> Operation:
    return lambda losses, minibatch: operation(minibatch, losses)


def _with_averages(operation: Operation) -> Operation:
    return lambda updates, losses: operation(updates, losses)


@dataclass(frozen=True)
class Destination:
    """Destination of `register_op`.

    Attributes:
        point: the loop point that calls the operations.
        adapt: returns a function with the arguments of the point for an operation; None where one hook calls all
            operations of the destination.
        called_with: arguments of an operation in words, for messages and the reference.
        rank: at the same point, operations of a higher rank are called later.
    """

    point: str
    adapt: Callable[[Operation], Operation] | None
    called_with: str
    rank: int = 0


DESTINATIONS: Final[dict[str, Destination]] = {
    "setup": Destination("setup", _with_nothing, "nothing"),
    "batch_process": Destination("batch_process", _with_batch, "batch; returns the batch or None"),
    "pre_steps_log": Destination("pre_steps_log", _with_batch, "batch; returns metrics or None"),
    "pre_optim_steps": Destination("pre_optim_steps", _with_nothing, "nothing"),
    "pre_epoch_log": Destination("pre_epoch_log", _with_batch, "batch; returns metrics or None"),
    "pre_epoch": Destination("pre_epoch", _with_batch, "batch; returns the batch or None"),
    "process_optim_batch": Destination(
        "process_optim_batch", _to_minibatch, "batch; returns the sub-batch or None; StopIteration ends the epoch"
    ),
    "post_loss": Destination("post_loss", None, "sub-batch; a returned one goes to the next operation here only"),
    "process_loss": Destination("post_loss", _to_losses, "sub-batch, losses; returns the losses or None", rank=1),
    "optimizer": Destination("optimizer", None, "losses, clip_grad_norm, clip_norm, index; returns losses or None"),
    "post_optim": Destination("post_optim", _with_nothing, "nothing"),
    "post_optim_log": Destination("post_optim_log", _with_minibatch, "sub-batch; returns metrics or None"),
    "post_epoch_log": Destination("post_epoch_log", _with_batch, "batch; returns metrics or None"),
    "post_epoch": Destination("post_epoch", _with_nothing, "nothing"),
    "post_optim_complete_log": Destination(
        "post_optim_complete_log", _with_averages, "optimisation steps so far, mean losses; returns metrics or None"
    ),
    "post_steps": Destination("post_steps", _with_nothing, "nothing"),
    "post_steps_log": Destination("post_steps_log", _with_batch, "batch; returns metrics or None"),
    "shutdown": Destination("shutdown", _with_nothing, "nothing"),
}


@dataclass
class Registered:
    """Operation with its destination.

    Attributes:
        operation: the argument of `register_op`.
        call: the operation with its keyword arguments.
        hook: holds its name and the time spent in it.
    """

    destination: str
    operation: Operation
    call: Operation
    hook: Hook

    @property
    def source(self) -> Any:
        """Owner of a bound method, or the operation itself."""
        return source_of(self.operation)


def source_of(operation: Operation) -> Any:
    """Return the owner of a bound method, or the operation itself."""
    # `inspect.ismethod` is False for methods written in C, which have an owner too
    return getattr(operation, "__self__", operation)


class Operations:
    """Registers operations, and puts them among the hooks of the loop.

    Args:
        hooks: of the loop.
        clipping: returns `clip_grad_norm` and `clip_norm`.
    """

    def __init__(self, hooks: LoopHooks, clipping: Clipping) -> None:
        self._hooks = hooks
        self._clipping = clipping
        self._registered: list[Registered] = []
        self._in_loop: list[Hook] = []
        self._names: dict[int, str] = {}

    def add(self, destination: str, operation: Operation, arguments: Mapping[str, Any]) -> None:
        """Register an operation with further keyword arguments for every call.

        Raises:
            HookError: the destination is unknown, or the operation cannot be called.
        """
        if destination not in DESTINATIONS:
            raise HookError(
                f"register_op: {destination!r} is not a destination{did_you_mean(str(destination), DESTINATIONS)}; "
                f"they are {', '.join(DESTINATIONS)}"
            )
        if not callable(operation):
            raise HookError(
                f"register_op({destination!r}): {operation!r} cannot be called; pass a function, a bound method or a "
                "hook with __call__"
            )
        bound = partial(operation, **arguments) if arguments else operation
        registered = Registered(destination, operation, bound, Hook("", operation))
        self._registered.append(registered)
        self._rename()
        self._update()

    def remove(self, operation: Operation, destination: str | None) -> None:
        """Remove an operation, or all operations of an object, from one destination or from all.

        Raises:
            HookError: it is not registered there.
        """
        removed = [
            entry
            for entry in self._registered
            if (operation is entry.source or operation == entry.operation) and destination in (None, entry.destination)
        ]
        if not removed:
            place = f" at {destination!r}" if destination else ""
            raise HookError(f"unregister_op: {operation!r} is not registered{place}")
        self._registered = [entry for entry in self._registered if entry not in removed]
        self._rename()
        self._update()

    def name(self, source: Any, name: str) -> None:
        """Name the operations of an object after the name of the module in `register_module`."""
        self._names[id(source)] = name
        self._rename()

    def _rename(self) -> None:
        """Give every operation a name of its own, with the destination where several have one name."""
        bases = Counter(self._name(entry) for entry in self._registered)
        counts: Counter[str] = Counter()
        for entry in self._registered:
            name = self._name(entry)
            if bases[name] > 1:
                name = f"{name}/{entry.destination}"
            counts[name] += 1
            entry.hook.name = name if counts[name] == 1 else f"{name}-{counts[name]}"

    def _name(self, entry: Registered) -> str:
        name = self._names.get(id(entry.source))
        if name is not None:
            return name
        # by name: functions have one, other callables have not
        return getattr(entry.operation, "__qualname__", None) or type(entry.operation).__name__

    def _update(self) -> None:
        """Replace the hooks of the operations in the loop, from the next iteration on."""
        # a stable sort: destinations of one rank stay in the order of the table
        ranked = sorted(DESTINATIONS.items(), key=lambda item: item[1].rank)
        coming: list[Hook] = []
        for name, destination in ranked:
            entries = [entry for entry in self._registered if entry.destination == name]
            if destination.adapt is not None:
                for entry in entries:
                    function = destination.adapt(entry.call)
                    entry.hook.instance = SimpleNamespace(**{destination.point: hookimpl(function)})
                    coming.append(entry.hook)
            elif entries:
                together = _TOGETHER[name](entries, self._clipping)
                coming.append(Hook(f"{name} operations", together))
        self._hooks.replace(self._in_loop, coming)
        self._in_loop = coming


class _PostLoss:
    """Calls the operations at `post_loss` one after the other, each with the sub-batch from the one before.

    Attributes:
        called_together: the hooks of the operations, which hold their times.
    """

    def __init__(self, entries: list[Registered], clipping: Clipping) -> None:
        self.called_together = [entry.hook for entry in entries]
        self._implementations = [Implementation(entry.hook, "post_loss", entry.call) for entry in entries]

    @hookimpl
    def post_loss(self, minibatch: Any) -> None:
        for implementation in self._implementations:
            result = call(implementation, minibatch)
            if result is None:
                continue
            if not is_mapping(result):
                raise implementation.wrong_return(result, "a TensorDict, or None")
            minibatch = result


class _Optimizers:
    """Calls the operations at `optimizer` one after the other, each with the losses from the one before.

    Attributes:
        called_together: the hooks of the operations, which hold their times.
    """

    def __init__(self, entries: list[Registered], clipping: Clipping) -> None:
        self.called_together = [entry.hook for entry in entries]
        self._implementations = [Implementation(entry.hook, "optimizer", entry.call) for entry in entries]
        self._checks = [
            Implementation(entry.hook, "optimizer", entry.source.check_losses)
            for entry in entries
            if defines(entry.source, HookObject.check_losses)
        ]
        self._clipping = clipping

    @hookimpl
    def optimizer(self, losses: Any) -> dict[str, Any]:
        clip_grad_norm, clip_norm = self._clipping()
        for index, implementation in enumerate(self._implementations):
            result = call(implementation, losses, clip_grad_norm, clip_norm, index)
            if result is None:
                continue
            if not is_mapping(result):
                raise implementation.wrong_return(result, "a TensorDict or a mapping of losses, or None")
            losses = result
        return detached(losses)

    @hookimpl
    def post_steps(self) -> None:
        for check in self._checks:  # once per iteration and not per update, since a check waits for the device
            call(check)


_TOGETHER: Final[dict[str, Callable[[list[Registered], Clipping], Any]]] = {
    "post_loss": _PostLoss,
    "optimizer": _Optimizers,
}
