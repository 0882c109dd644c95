"""Builders for scripts: parts of a training loop from one flat settings object, without a config file.

A settings object is anything with attributes: a dataclass, a namespace, an `argparse` result, an OmegaConf node. The
builders are those of rlcore-plugin-torchrl; the parts come from plugins too, which are imported when one is called.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rlcore.lazy import lazy
from rlcore.plugins.known import lend, lent_to

if TYPE_CHECKING:
    from rlcore_plugin_torchrl.helpers.actors import make_dqn_actor as make_dqn_actor
    from rlcore_plugin_torchrl.helpers.collectors import make_collector_offpolicy as make_collector_offpolicy
    from rlcore_plugin_torchrl.helpers.collectors import make_collector_onpolicy as make_collector_onpolicy
    from rlcore_plugin_torchrl.helpers.collectors import sync_async_collector as sync_async_collector
    from rlcore_plugin_torchrl.helpers.collectors import sync_sync_collector as sync_sync_collector
    from rlcore_plugin_torchrl.helpers.dqn import make_dqn_loss as make_dqn_loss
    from rlcore_plugin_torchrl.helpers.dqn import make_target_updater as make_target_updater
    from rlcore_plugin_torchrl.helpers.dreamer import make_dreamer as make_dreamer
    from rlcore_plugin_torchrl.helpers.envs import parallel_env_constructor as parallel_env_constructor
    from rlcore_plugin_torchrl.helpers.envs import transformed_env_constructor as transformed_env_constructor
    from rlcore_plugin_torchrl.helpers.frames import correct_for_frame_skip as correct_for_frame_skip
    from rlcore_plugin_torchrl.helpers.logging_settings import LoggerConfig as LoggerConfig
    from rlcore_plugin_torchrl.helpers.replay import make_replay_buffer as make_replay_buffer
    from rlcore_plugin_torchrl.helpers.statistics import get_stats_random_rollout as get_stats_random_rollout
    from rlcore_plugin_torchrl.helpers.trainers import make_trainer as make_trainer

__all__, __getattr__, __dir__ = lazy(__name__, {}, partial(lend, __name__))
__all__ += sorted(lent_to(__name__))
