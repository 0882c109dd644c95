"""What every collector may use: episodes counted in batches, and any iterable as a collector; the rest is lent."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rlcore.lazy import lazy
from rlcore.plugins.known import lend

if TYPE_CHECKING:
    from rlcore_plugin_rollout.batch_storage import BatchStorage as BatchStorage
    from rlcore_plugin_rollout.batch_storage import layout_of as layout_of
    from rlcore_plugin_rollout.env_collector import EnvCollector as EnvCollector
    from rlcore_plugin_rollout.local import LocalCollector as LocalCollector
    from rlcore_plugin_rollout.policy_state import Remembering as Remembering
    from rlcore_plugin_rollout.policy_state import remembering as remembering
    from rlcore_plugin_rollout.stepping import Acting as Acting
    from rlcore_plugin_rollout.stepping import EnvStepper as EnvStepper

    from rlcore.collectors.episodes import EpisodeCounter as EpisodeCounter
    from rlcore.types.foreign import UpdatesPolicyWeights as UpdatesPolicyWeights

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.collectors.episodes": "EpisodeCounter",
        "rlcore.types.foreign": "UpdatesPolicyWeights",
    },
    partial(lend, __name__),
)
