"""rlcore: a plugin-based trainer for reinforcement learning on PyTorch.

Public names are resolved when they are first used, so that `import rlcore` imports neither torch nor tensordict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlcore.late_compiler import put_off
from rlcore.lazy import lazy
from rlcore.version import __version__ as __version__

if TYPE_CHECKING:
    from rlcore_plugin_agents.agent import Agent as Agent
    from rlcore_plugin_agents.exploration import ExplorationType as ExplorationType
    from rlcore_plugin_agents.exploration import exploration_type as exploration_type
    from rlcore_plugin_agents.exploration import set_exploration_type as set_exploration_type
    from rlcore_plugin_agents.loading import load_agent as load_agent
    from rlcore_plugin_agents.rollout import rollout as rollout
    from rlcore_plugin_presets.algorithms import A2C as A2C
    from rlcore_plugin_presets.algorithms import C51 as C51
    from rlcore_plugin_presets.algorithms import DDPG as DDPG
    from rlcore_plugin_presets.algorithms import DQN as DQN
    from rlcore_plugin_presets.algorithms import PPO as PPO
    from rlcore_plugin_presets.algorithms import R2D2 as R2D2
    from rlcore_plugin_presets.algorithms import SAC as SAC
    from rlcore_plugin_presets.algorithms import TD3 as TD3
    from rlcore_plugin_presets.algorithms import CrossQ as CrossQ
    from rlcore_plugin_presets.algorithms import DiscreteSAC as DiscreteSAC
    from rlcore_plugin_presets.algorithms import RecurrentPPO as RecurrentPPO
    from rlcore_plugin_presets.algorithms import preset as preset
    from rlcore_plugin_torchrl.hooks.batch_sub_sampler import BatchSubSampler as BatchSubSampler
    from rlcore_plugin_torchrl.hooks.clear_cuda_cache import ClearCudaCache as ClearCudaCache
    from rlcore_plugin_torchrl.hooks.count_frames import CountFramesLog as CountFramesLog
    from rlcore_plugin_torchrl.hooks.early_stopping import EarlyStopping as EarlyStopping
    from rlcore_plugin_torchrl.hooks.log_scalar import LogReward as LogReward
    from rlcore_plugin_torchrl.hooks.log_scalar import LogScalar as LogScalar
    from rlcore_plugin_torchrl.hooks.lr_scheduler import LRSchedulerHook as LRSchedulerHook
    from rlcore_plugin_torchrl.hooks.mask_batch import mask_batch as mask_batch
    from rlcore_plugin_torchrl.hooks.optimization_stepper import (
        DefaultOptimizationStepper as DefaultOptimizationStepper,
    )
    from rlcore_plugin_torchrl.hooks.optimization_stepper import OptimizationStepper as OptimizationStepper
    from rlcore_plugin_torchrl.hooks.replay_buffer import ReplayBufferTrainer as ReplayBufferTrainer
    from rlcore_plugin_torchrl.hooks.reward_normalizer import RewardNormalizer as RewardNormalizer
    from rlcore_plugin_torchrl.hooks.select_keys import SelectKeys as SelectKeys
    from rlcore_plugin_torchrl.hooks.timing import LogTiming as LogTiming
    from rlcore_plugin_torchrl.hooks.update_weights import UpdateWeights as UpdateWeights
    from rlcore_plugin_torchrl.hooks.utd_ratio import UTDRHook as UTDRHook
    from rlcore_plugin_torchrl.hooks.validation_reward import LogValidationReward as LogValidationReward
    from rlcore_plugin_torchrl.hooks.validation_reward import Recorder as Recorder
    from rlcore_plugin_torchrl.hooks.value_estimator import ValueEstimatorHook as ValueEstimatorHook
    from rlcore_plugin_torchrl.rotation import CheckpointRotation as CheckpointRotation

    from rlcore.buffers.minibatch import Minibatch as Minibatch
    from rlcore.config.sections import load_config as load_config
    from rlcore.core_hooks.base import TrainerHookBase as TrainerHookBase
    from rlcore.core_hooks.optimizer import OptimizerHook as OptimizerHook
    from rlcore.core_hooks.target_net_updater import TargetNetUpdaterHook as TargetNetUpdaterHook
    from rlcore.errors import ConfigError as ConfigError
    from rlcore.errors import EnvError as EnvError
    from rlcore.errors import HookError as HookError
    from rlcore.errors import NumericalError as NumericalError
    from rlcore.errors import PluginError as PluginError
    from rlcore.errors import RlcoreError as RlcoreError
    from rlcore.errors import StorageError as StorageError
    from rlcore.hooks.specs import hookimpl as hookimpl
    from rlcore.loggers.metrics import Last as Last
    from rlcore.loggers.metrics import Sum as Sum
    from rlcore.plugins.component import Component as Component
    from rlcore.run.build import build as build
    from rlcore.scripts.factory import Factory as Factory
    from rlcore.scripts.trainer import Trainer as Trainer
    from rlcore.types import EnvSpec as EnvSpec
    from rlcore.types import Episode as Episode
    from rlcore.types import EvaluationResult as EvaluationResult
    from rlcore.types import Step as Step
    from rlcore.types.context import Context as Context
    from rlcore.types.progress import Every as Every
    from rlcore.types.progress import Progress as Progress


def _lent(name: str) -> Any:
    """Return a name that a plugin lends while it is installed; `__all__` has none, since they may be missing."""
    from rlcore.plugins.known import lend

    return lend(__name__, name)


__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.buffers.minibatch": "Minibatch",
        "rlcore.config.sections": "load_config",
        "rlcore.errors": "ConfigError EnvError HookError NumericalError PluginError RlcoreError StorageError",
        "rlcore.hooks.specs": "hookimpl",
        "rlcore.loggers.metrics": "Last Sum",
        "rlcore.plugins.component": "Component",
        "rlcore.run.build": "build",
        "rlcore.scripts.factory": "Factory",
        "rlcore.scripts.trainer": "Trainer",
        "rlcore.core_hooks.base": "TrainerHookBase",
        "rlcore.core_hooks.optimizer": "OptimizerHook",
        "rlcore.core_hooks.target_net_updater": "TargetNetUpdaterHook",
        "rlcore.types": "EnvSpec Episode EvaluationResult Step",
        "rlcore.types.context": "Context",
        "rlcore.types.progress": "Every Progress",
    },
    _lent,
)
__all__ += ["__version__"]
put_off()
