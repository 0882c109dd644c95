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
    from rlcore_plugin_agents.loading import load_agent as load_agent
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

    from rlcore.buffers.minibatch import Minibatch as Minibatch
    from rlcore.config.sections import load_config as load_config
    from rlcore.envs.checks import check_env_specs as check_env_specs
    from rlcore.envs.exploration import ExplorationType as ExplorationType
    from rlcore.envs.exploration import exploration_type as exploration_type
    from rlcore.envs.exploration import set_exploration_type as set_exploration_type
    from rlcore.envs.rollout import rollout as rollout
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
    from rlcore.scripts.rotation import CheckpointRotation as CheckpointRotation
    from rlcore.scripts.trainer import Trainer as Trainer
    from rlcore.stock.base import TrainerHookBase as TrainerHookBase
    from rlcore.stock.batch_sub_sampler import BatchSubSampler as BatchSubSampler
    from rlcore.stock.clear_cuda_cache import ClearCudaCache as ClearCudaCache
    from rlcore.stock.count_frames import CountFramesLog as CountFramesLog
    from rlcore.stock.early_stopping import EarlyStopping as EarlyStopping
    from rlcore.stock.log_scalar import LogReward as LogReward
    from rlcore.stock.log_scalar import LogScalar as LogScalar
    from rlcore.stock.lr_scheduler import LRSchedulerHook as LRSchedulerHook
    from rlcore.stock.mask_batch import mask_batch as mask_batch
    from rlcore.stock.optimization_stepper import DefaultOptimizationStepper as DefaultOptimizationStepper
    from rlcore.stock.optimization_stepper import OptimizationStepper as OptimizationStepper
    from rlcore.stock.optimizer import OptimizerHook as OptimizerHook
    from rlcore.stock.replay_buffer import ReplayBufferTrainer as ReplayBufferTrainer
    from rlcore.stock.reward_normalizer import RewardNormalizer as RewardNormalizer
    from rlcore.stock.select_keys import SelectKeys as SelectKeys
    from rlcore.stock.target_net_updater import TargetNetUpdaterHook as TargetNetUpdaterHook
    from rlcore.stock.timing import LogTiming as LogTiming
    from rlcore.stock.update_weights import UpdateWeights as UpdateWeights
    from rlcore.stock.utd_ratio import UTDRHook as UTDRHook
    from rlcore.stock.validation_reward import LogValidationReward as LogValidationReward
    from rlcore.stock.validation_reward import Recorder as Recorder
    from rlcore.stock.value_estimator import ValueEstimatorHook as ValueEstimatorHook
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
        "rlcore.envs.checks": "check_env_specs",
        "rlcore.envs.exploration": "ExplorationType exploration_type set_exploration_type",
        "rlcore.envs.rollout": "rollout",
        "rlcore.errors": "ConfigError EnvError HookError NumericalError PluginError RlcoreError StorageError",
        "rlcore.hooks.specs": "hookimpl",
        "rlcore.loggers.metrics": "Last Sum",
        "rlcore.plugins.component": "Component",
        "rlcore.run.build": "build",
        "rlcore.scripts.factory": "Factory",
        "rlcore.scripts.rotation": "CheckpointRotation",
        "rlcore.scripts.trainer": "Trainer",
        "rlcore.stock.base": "TrainerHookBase",
        "rlcore.stock.batch_sub_sampler": "BatchSubSampler",
        "rlcore.stock.clear_cuda_cache": "ClearCudaCache",
        "rlcore.stock.count_frames": "CountFramesLog",
        "rlcore.stock.early_stopping": "EarlyStopping",
        "rlcore.stock.log_scalar": "LogReward LogScalar",
        "rlcore.stock.lr_scheduler": "LRSchedulerHook",
        "rlcore.stock.mask_batch": "mask_batch",
        "rlcore.stock.optimization_stepper": "DefaultOptimizationStepper OptimizationStepper",
        "rlcore.stock.optimizer": "OptimizerHook",
        "rlcore.stock.replay_buffer": "ReplayBufferTrainer",
        "rlcore.stock.reward_normalizer": "RewardNormalizer",
        "rlcore.stock.select_keys": "SelectKeys",
        "rlcore.stock.target_net_updater": "TargetNetUpdaterHook",
        "rlcore.stock.timing": "LogTiming",
        "rlcore.stock.update_weights": "UpdateWeights",
        "rlcore.stock.utd_ratio": "UTDRHook",
        "rlcore.stock.validation_reward": "LogValidationReward Recorder",
        "rlcore.stock.value_estimator": "ValueEstimatorHook",
        "rlcore.types": "EnvSpec Episode EvaluationResult Step",
        "rlcore.types.context": "Context",
        "rlcore.types.progress": "Every Progress",
    },
    _lent,
)
__all__ += ["__version__"]
put_off()
