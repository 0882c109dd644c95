"""Whether everything in a run can do with batches of some of the envs; asked before the first frame."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rlcore.errors import ConfigError
from rlcore.hooks.points import LoopHooks
from rlcore.types.optional import EpisodeKeeper, offers
from rlcore.types.optional_learning import EnvCounter, SomeEnvsTaker


def keepers_of(transforms: Iterable[Any], buffer: Any, hooks: LoopHooks) -> list[tuple[str, Any]]:
    """Return the parts of a run that may carry something from batch to batch, each with the name of its section."""
    found = [("transform", transform) for transform in transforms]
    return [*found, ("buffer", buffer), *(("hook", hook.instance) for hook in hooks.hooks)]


def check_some_envs(collector: Any, num_envs: int, parts: Iterable[tuple[str, Any]]) -> None:
    """Refuse what would take the rows of a batch for the envs of the batch before, where they may be others.

    Args:
        collector: of the run.
        num_envs: of the run.
        parts: those of `keepers_of`.

    Raises:
        ConfigError: says which, and what to do.
    """
    if not offers(collector, EnvCounter) or collector.batch_envs == num_envs:
        return
    for section, part in parts:
        taken = offers(part, SomeEnvsTaker) and part.takes_some_envs
        if offers(part, EpisodeKeeper) and not taken:
            raise ConfigError(
                f"[{section}] {type(part).__name__} carries something of the running episodes from batch to batch, and "
                f"batches of [collector] have {collector.batch_envs} of {num_envs} envs, not always the same; leave it "
                "out, or take batches of all envs (order = 'given' of the collector workers)"
            )
