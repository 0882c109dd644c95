"""From envs to batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore.collectors.base import EnvCollector as EnvCollector
    from rlcore.collectors.batch_storage import BatchStorage as BatchStorage
    from rlcore.collectors.batch_storage import layout_of as layout_of
    from rlcore.collectors.local import LocalCollector as LocalCollector
    from rlcore.collectors.policy_state import Remembering as Remembering
    from rlcore.collectors.policy_state import remembering as remembering
    from rlcore.collectors.stepping import Acting as Acting
    from rlcore.collectors.stepping import EnvStepper as EnvStepper
    from rlcore.types.foreign import UpdatesPolicyWeights as UpdatesPolicyWeights

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.collectors.base": "EnvCollector",
        "rlcore.collectors.batch_storage": "BatchStorage layout_of",
        "rlcore.collectors.local": "LocalCollector",
        "rlcore.collectors.policy_state": "Remembering remembering",
        "rlcore.collectors.stepping": "Acting EnvStepper",
        "rlcore.types.foreign": "UpdatesPolicyWeights",
    },
)
