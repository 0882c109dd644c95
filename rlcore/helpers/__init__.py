"""Builders for scripts: parts of a training loop from one flat settings object, without a config file.

A settings object is anything with attributes: a dataclass, a namespace, an `argparse` result, an OmegaConf node. The
parts come from plugins, which are imported when a builder is called.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rlcore.helpers.dqn import make_dqn_loss as make_dqn_loss
    from rlcore.helpers.dqn import make_target_updater as make_target_updater
    from rlcore.helpers.frames import correct_for_frame_skip as correct_for_frame_skip
    from rlcore.helpers.replay import make_replay_buffer as make_replay_buffer
    from rlcore.helpers.statistics import get_stats_random_rollout as get_stats_random_rollout

_PLACES: Final = {
    "correct_for_frame_skip": "rlcore.helpers.frames",
    "get_stats_random_rollout": "rlcore.helpers.statistics",
    "make_dqn_loss": "rlcore.helpers.dqn",
    "make_replay_buffer": "rlcore.helpers.replay",
    "make_target_updater": "rlcore.helpers.dqn",
}
__all__ = sorted(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'rlcore.helpers' has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return __all__
