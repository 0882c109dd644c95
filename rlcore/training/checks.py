"""What is refused before the first frame, as a run of these parts would train nothing, or something else.

A loss says what it `reads` of its minibatches, and whoever puts entries into batches what it `writes`, by a class or
instance attribute. A part that may write and does not say what may write anything; then only the first update tells.
An optimizer that would never step is refused; of a run that would never update, a warning is all, as such a run may be
meant to fill a buffer, or to be extended.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final

from rlcore.errors import ConfigError
from rlcore.hooks.points import LoopHooks
from rlcore.training.overrides import speaks_for
from rlcore.types import Buffer, Collector, Key, has_memory
from rlcore.types.context import Context
from rlcore.types.learning import PacedOptimizer
from rlcore.types.loss import Loss
from rlcore.types.models import policy_of
from rlcore.types.part import Part, defines, with_defaults
from rlcore.types.progress import ENDLESS, Every
from rlcore.types.records import COLLECTED, ESTIMATED

log = logging.getLogger(__name__)

# where a hook may put entries into a batch or minibatch before the loss sees it
WRITING_POINTS: Final = ("batch_process", "pre_optim_steps", "pre_epoch", "process_optim_batch")
_MEMORY_ADVICE: Final = {
    "buffer": 'it hands out steps one by one, without what came before them; use = "rollout-sequences", or for replay '
    '"replay:sequences"',
    "loss": "it calls the parts of the model without a state; ppo, a2c, r2d2, sac, td3 and ddpg do with one",
    "estimator": "it calls the critic without a state; gae does with one",
}


def reads_of(part: Any) -> tuple[Key, ...] | None:
    """Return the entries that a part, or its class, says it reads; None where it says nothing."""
    return _keys(with_defaults(part, Loss).reads)


def writes_of(part: Any) -> tuple[Key, ...] | None:
    """Return the entries that a part, or its class, says it writes; None where it says nothing."""
    return _keys(with_defaults(part, Part).writes)


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


def _unwritten(loss: str, missing: Iterable[Key]) -> str:
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
    policy = policy_of(model)
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
        raise ConfigError(_unwritten(name, missing))


def check_memory(model: Any, parts: Mapping[str, Any]) -> None:
    """Refuse what trains a policy with a state as one without.

    Args:
        model: of the run.
        parts: loss, estimator and buffer by their section, where there is one.

    Raises:
        ConfigError: says which, and what to use instead.
    """
    if not has_memory(model):
        return
    for section, part in parts.items():
        if part is not None and not with_defaults(part, Part).takes_memory:
            raise ConfigError(
                f"[{section}] {type(part).__name__} does not know policies with a state, as [model] "
                f"{type(model).__name__} has one: {_MEMORY_ADVICE[section]}"
            )


def keepers_of(transforms: Iterable[Any], buffer: Any, hooks: LoopHooks) -> list[tuple[str, Any]]:
    """Return the parts of a run that may carry something from batch to batch, each with the name of its section."""
    named_transforms = [("transform", transform) for transform in transforms]
    return [*named_transforms, ("buffer", buffer), *(("hook", hook.instance) for hook in hooks.hooks)]


def check_some_envs(collector: Any, num_envs: int, parts: Iterable[tuple[str, Any]]) -> None:
    """Refuse what would take the rows of a batch for the envs of the batch before, where they may be others.

    Args:
        collector: of the run.
        num_envs: of the run.
        parts: those of `keepers_of`.

    Raises:
        ConfigError: says which, and what to do.
    """
    batch_envs = with_defaults(collector, Collector).batch_envs
    if batch_envs in (None, num_envs):
        return
    for section, part in parts:
        if defines(part, Part.forget_episodes) and not with_defaults(part, Part).takes_some_envs:
            raise ConfigError(
                f"[{section}] {type(part).__name__} carries something of the running episodes from batch to batch, and "
                f"batches of [collector] have {batch_envs} of {num_envs} envs, not always the same; leave it "
                "out, or take batches of all envs (order = 'given' of the collector workers)"
            )


def check_paces(optimizers: Mapping[str, Any], context: Context) -> None:
    """Refuse an optimizer that would take no step in the whole run.

    Args:
        optimizers: by name.
        context: of the run, with its parts.

    Raises:
        ConfigError: there is one.
    """
    updates: int | None = None
    for name, optimizer in optimizers.items():
        every = with_defaults(optimizer, PacedOptimizer).every
        if every == 1:
            continue
        updates = most_updates(context) if updates is None else updates
        if updates is None:
            return
        if 0 < updates < every:  # a run without any update is one that collects
            raise ConfigError(
                f"[optimizer] {name!r}: every = {every} never comes round, as the run makes {updates} "
                "updates, so that it would take no step; lower it, or let the run be longer ([run] "
                f"total_{context.progress.clock})"
            )


def check_source(buffer: Any, name: str, context: Context) -> None:
    """Refuse a run that collects nothing where something waits for what is collected.

    Args:
        buffer: or its class, where it is not built.
        name: of the buffer, for the message.
        context: of the run, with its collector and estimator.

    Raises:
        ConfigError: says what waits, and what to do.
    """
    collector = context.built["collector"]
    if with_defaults(collector, Collector).batch_steps != 0:
        return
    if context.progress.clock == "frames":
        raise ConfigError(
            "[collector] use = 'none' collects no frames, so a run with [run] total_frames never ends; give "
            "total_updates instead, or another collector"
        )
    if not with_defaults(buffer, Buffer).has_data:
        raise ConfigError(
            f"[buffer] {name} waits for batches, and nothing is collected: a run with [run] total_updates has no "
            "collector unless it has a section [collector]. Add one (use = 'local'), or take a buffer that has its data"
        )
    if context.estimator is not None:
        raise ConfigError("[estimator]: it works on batches, and nothing is collected; leave the section out")


def check_intervals(intervals: Iterable[Every]) -> None:
    """Refuse intervals by frames in a run that collects none.

    Raises:
        ConfigError: there is one.
    """
    for every in intervals:
        if every.clock == "frames":
            raise ConfigError(
                f"every = {{ frames = {every.interval} }} never comes round, as the run collects no frames; give a "
                "number of updates, or { iterations = … }"
            )


def warn_of_no_updates(context: Context) -> None:
    """Warn of a run that ends before its warm-up does."""
    warmup, horizon = context.built["buffer"].warmup_frames, context.run.total_frames
    if warmup > horizon:
        log.warning(
            "[buffer] warmup_frames = %s: the run ends after %s frames ([run] total_frames), so it trains nothing; "
            "lower the one or raise the other",
            f"{warmup:,}",
            f"{horizon:,}",
        )


def most_updates(context: Context) -> int | None:
    """Return how many updates a run makes at most: fewer where a hook ends epochs. None where nobody knows.

    Args:
        context: of the run, with its parts.
    """
    buffer, collector, spec = context.built["buffer"], context.built["collector"], context.env_spec
    if context.run.total_updates is not None:
        return context.run.total_updates
    horizon = context.run.total_frames
    batch_steps = with_defaults(collector, Collector).batch_steps
    if batch_steps is None or defines(collector, Collector.steps_written):
        return None
    counts = speaks_for(buffer, "most_updates", "minibatches")
    of_epoch = with_defaults(buffer, Buffer).most_updates(batch_steps) if counts else None
    if of_epoch is None:
        return None
    if spec.reset_mode == "next_step" or horizon == ENDLESS:  # steps that only reset an env are no frames
        return None
    frames = batch_steps * spec.frame_skip * context.group.size
    without = max(0, -(-buffer.warmup_frames // frames) - 1)
    iterations = max(0, -(-horizon // frames) - without)
    return int(iterations * buffer.num_epochs * of_epoch)
