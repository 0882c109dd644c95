"""From envs to batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore.collectors.batch_storage import BatchStorage as BatchStorage
    from rlcore.collectors.batch_storage import layout_of as layout_of
    from rlcore.collectors.local import steps_per_env as steps_per_env
    from rlcore.collectors.local import written as written
    from rlcore.collectors.stepping import Acting as Acting
    from rlcore.collectors.stepping import EnvStepper as EnvStepper

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.collectors.batch_storage": "BatchStorage layout_of",
        "rlcore.collectors.local": "steps_per_env written",
        "rlcore.collectors.stepping": "Acting EnvStepper",
    },
)
