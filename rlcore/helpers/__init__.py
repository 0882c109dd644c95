"""Builders for scripts: parts of a training loop from one flat settings object, without a config file.

A settings object is anything with attributes: a dataclass, a namespace, an `argparse` result, an OmegaConf node. The
parts come from plugins, which are imported when a builder is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore.helpers.actors import make_dqn_actor as make_dqn_actor
    from rlcore.helpers.collectors import make_collector_offpolicy as make_collector_offpolicy
    from rlcore.helpers.collectors import make_collector_onpolicy as make_collector_onpolicy
    from rlcore.helpers.collectors import sync_async_collector as sync_async_collector
    from rlcore.helpers.collectors import sync_sync_collector as sync_sync_collector
    from rlcore.helpers.dqn import make_dqn_loss as make_dqn_loss
    from rlcore.helpers.dqn import make_target_updater as make_target_updater
    from rlcore.helpers.envs import parallel_env_constructor as parallel_env_constructor
    from rlcore.helpers.envs import transformed_env_constructor as transformed_env_constructor
    from rlcore.helpers.frames import correct_for_frame_skip as correct_for_frame_skip
    from rlcore.helpers.logging_settings import LoggerConfig as LoggerConfig
    from rlcore.helpers.replay import make_replay_buffer as make_replay_buffer
    from rlcore.helpers.statistics import get_stats_random_rollout as get_stats_random_rollout
    from rlcore.helpers.trainers import make_trainer as make_trainer

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.helpers.actors": "make_dqn_actor",
        "rlcore.helpers.collectors": (
            "make_collector_offpolicy make_collector_onpolicy sync_async_collector sync_sync_collector"
        ),
        "rlcore.helpers.dqn": "make_dqn_loss make_target_updater",
        "rlcore.helpers.envs": "parallel_env_constructor transformed_env_constructor",
        "rlcore.helpers.frames": "correct_for_frame_skip",
        "rlcore.helpers.logging_settings": "LoggerConfig",
        "rlcore.helpers.replay": "make_replay_buffer",
        "rlcore.helpers.statistics": "get_stats_random_rollout",
        "rlcore.helpers.trainers": "make_trainer",
    },
)
