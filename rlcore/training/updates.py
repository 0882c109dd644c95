"""How many updates a run will make, where that is known before it.

An optimizer that would never step is refused; of a run that would never update, a warning is all, as such a run may be
meant to fill a buffer, or to be extended.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from rlcore.errors import ConfigError
from rlcore.training.overrides import speaks_for
from rlcore.types import BackgroundCollector
from rlcore.types.context import Context
from rlcore.types.optional import BatchSized, offers
from rlcore.types.optional_data import SelfFilled
from rlcore.types.optional_learning import Paced, UpdateCounter
from rlcore.types.progress import ENDLESS, Every

log = logging.getLogger(__name__)


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
        if not offers(optimizer, Paced) or optimizer.every == 1:
            continue
        updates = most_updates(context) if updates is None else updates
        if updates is None:
            return
        if 0 < updates < optimizer.every:  # a run without any update is one that collects
            raise ConfigError(
                f"[optimizer] {name!r}: every = {optimizer.every} never comes round, as the run makes {updates} "
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
    if not offers(collector, BatchSized) or collector.batch_steps:
        return
    if context.progress.clock == "frames":
        raise ConfigError(
            "[collector] use = 'none' collects no frames, so a run with [run] total_frames never ends; give "
            "total_updates instead, or another collector"
        )
    if not (offers(buffer, SelfFilled) and buffer.has_data):
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
    counts = offers(buffer, UpdateCounter) and speaks_for(buffer, "most_updates", "minibatches")
    if not counts or not offers(collector, BatchSized) or isinstance(collector, BackgroundCollector):
        return None
    if spec.reset_mode == "next_step" or horizon == ENDLESS:  # steps that only reset an env are no frames
        return None
    frames = collector.batch_steps * spec.frame_skip * context.group.size
    without = max(0, -(-buffer.warmup_frames // frames) - 1)
    iterations = max(0, -(-horizon // frames) - without)
    return int(iterations * buffer.num_epochs * buffer.most_updates(collector.batch_steps))
