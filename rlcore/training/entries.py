"""What a loss reads of its minibatches, and who writes it: held against each other before the first frame.

A part says so by a class or instance attribute: a loss by `reads`, whoever puts entries into batches by `writes`. A
part that may write and does not say what may write anything; then only the first update tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from rlcore.errors import ConfigError
from rlcore.types import Key
from rlcore.types.optional import EntryReader, EntryWriter, WithPolicy, offers
from rlcore.types.records import COLLECTED, ESTIMATED

if TYPE_CHECKING:
    from rlcore.hooks.points import LoopHooks

# where a hook may put entries into a batch or minibatch before the loss sees it
WRITING_POINTS: Final = ("batch_process", "pre_optim_steps", "pre_epoch", "process_optim_batch")


def reads_of(part: Any) -> tuple[Key, ...] | None:
    """Return the entries that a part, or its class, says it reads; None where it says nothing."""
    return _keys(part.reads) if offers(part, EntryReader) else None


def writes_of(part: Any) -> tuple[Key, ...] | None:
    """Return the entries that a part, or its class, says it writes; None where it says nothing."""
    return _keys(part.writes) if offers(part, EntryWriter) else None


def _keys(entries: Any) -> tuple[Key, ...] | None:
    """Return declared entries; None for what a class has instead, such as a property."""
    return tuple(entries) if isinstance(entries, tuple | list) else None


def unwritten(loss: Any, writers: Iterable[Any], estimator: Any) -> list[Key]:
    """Return what a loss reads and nobody writes; nothing where it or one of the writers does not say.

    Args:
        loss: or its class.
        writers: the parts that may put entries into batches, or their classes; the policy of the model among them.
        estimator: writes at least `ESTIMATED`; None where there is none.
    """
    reads = reads_of(loss)
    if reads is None:
        return []
    written: set[Key] = set(COLLECTED)
    for writer in writers:
        entries = writes_of(writer)
        if entries is None:
            return []
        written |= set(entries)
    if estimator is not None:
        written |= {*ESTIMATED, *(writes_of(estimator) or ())}
    return [key for key in reads if key not in written]


def problem(loss: str, missing: Iterable[Key]) -> str:
    """Return what is wrong where a loss reads entries that nothing writes, and what to do."""
    keys = list(missing)
    names = ", ".join(map(repr, keys))
    advice = (
        'add a section [estimator], for example use = "gae" (rlcore-plugin-ppo)'
        if any(key in ESTIMATED for key in keys)
        else "add the transform, hook, buffer or model that does; one that writes entries says so by `writes`"
    )
    return f"{loss} reads {names} of its minibatches, which nothing here writes; {advice}"


def writers_of(parts: Mapping[str, Any], collector: Any, buffer: Any, hooks: LoopHooks) -> list[Any]:
    """Return who may put entries into the batches of a run, besides the estimator."""
    model = parts.get("model")
    policy = model.policy if offers(model, WithPolicy) else None
    points = [hook for point in WRITING_POINTS for hook in hooks.implementations(point)]
    return [policy, *parts.get("transforms", []), collector, buffer, *(point.hook.instance for point in points)]


def check_entries(loss: Any, name: str, writers: Iterable[Any], estimator: Any) -> None:
    """Refuse a loss that reads what nobody writes.

    Args:
        loss: the loss.
        name: of the loss, for the message.
        writers: as for `unwritten`.
        estimator: as for `unwritten`.

    Raises:
        ConfigError: says what is missing, and what to do.
    """
    missing = unwritten(loss, writers, estimator)
    if missing:
        raise ConfigError(problem(name, missing))
