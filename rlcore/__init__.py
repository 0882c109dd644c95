"""rlcore: a plugin-based trainer for reinforcement learning on PyTorch.

Public names are resolved when they are first used, so that `import rlcore` imports neither torch nor tensordict.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rlcore_plugin_video.pixel_render import PixelRenderTransform as PixelRenderTransform
    from rlcore_plugin_video.tensordict_recorder import TensorDictRecorder as TensorDictRecorder
    from rlcore_plugin_video.video_recorder import VideoRecorder as VideoRecorder

    from rlcore.buffers.minibatch import Minibatch as Minibatch
    from rlcore.checkpoints.retention import CheckpointRotation as CheckpointRotation
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
    from rlcore.plugins.component import Component as Component
    from rlcore.run.build import build as build
    from rlcore.scripts.factory import Factory as Factory
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

from rlcore.version import __version__ as __version__

_PLACES: Final = {
    "Component": "rlcore.plugins.component",
    "ConfigError": "rlcore.errors",
    "Context": "rlcore.types.context",
    "EnvError": "rlcore.errors",
    "EnvSpec": "rlcore.types",
    "Episode": "rlcore.types",
    "EvaluationResult": "rlcore.types",
    "Every": "rlcore.types.progress",
    "ExplorationType": "rlcore.envs.exploration",
    "HookError": "rlcore.errors",
    "Last": "rlcore.loggers.metrics",
    "Minibatch": "rlcore.buffers.minibatch",
    "NumericalError": "rlcore.errors",
    "PluginError": "rlcore.errors",
    "Progress": "rlcore.types.progress",
    "RlcoreError": "rlcore.errors",
    "Step": "rlcore.types",
    "StorageError": "rlcore.errors",
    "Trainer": "rlcore.scripts.trainer",
    "LogTiming": "rlcore.stock.timing",
    "TargetNetUpdaterHook": "rlcore.stock.target_net_updater",
    "OptimizerHook": "rlcore.stock.optimizer",
    "BatchSubSampler": "rlcore.stock.batch_sub_sampler",
    "ClearCudaCache": "rlcore.stock.clear_cuda_cache",
    "CountFramesLog": "rlcore.stock.count_frames",
    "DefaultOptimizationStepper": "rlcore.stock.optimization_stepper",
    "EarlyStopping": "rlcore.stock.early_stopping",
    "LRSchedulerHook": "rlcore.stock.lr_scheduler",
    "LogReward": "rlcore.stock.log_scalar",
    "LogScalar": "rlcore.stock.log_scalar",
    "LogValidationReward": "rlcore.stock.validation_reward",
    "OptimizationStepper": "rlcore.stock.optimization_stepper",
    "Recorder": "rlcore.stock.validation_reward",
    "ReplayBufferTrainer": "rlcore.stock.replay_buffer",
    "RewardNormalizer": "rlcore.stock.reward_normalizer",
    "SelectKeys": "rlcore.stock.select_keys",
    "UTDRHook": "rlcore.stock.utd_ratio",
    "UpdateWeights": "rlcore.stock.update_weights",
    "ValueEstimatorHook": "rlcore.stock.value_estimator",
    "mask_batch": "rlcore.stock.mask_batch",
    "TrainerHookBase": "rlcore.stock.base",
    "Factory": "rlcore.scripts.factory",
    "CheckpointRotation": "rlcore.scripts.settings",
    "build": "rlcore.run.build",
    "check_env_specs": "rlcore.envs.checks",
    "exploration_type": "rlcore.envs.exploration",
    "rollout": "rlcore.envs.rollout",
    "set_exploration_type": "rlcore.envs.exploration",
    "hookimpl": "rlcore.hooks.specs",
    "load_config": "rlcore.config.sections",
}
__all__ = [*sorted(_PLACES), "__version__"]

# names that plugins lend to this package while they are installed; not in __all__, since they may be missing
_LENT: Final = {
    "PixelRenderTransform": "rlcore_plugin_video.pixel_render",
    "TensorDictRecorder": "rlcore_plugin_video.tensordict_recorder",
    "VideoRecorder": "rlcore_plugin_video.video_recorder",
}


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(importlib.import_module(_PLACES[name]), name)
    if name in _LENT:
        return _lent(name)
    raise AttributeError(f"module 'rlcore' has no attribute {name!r}")


def _lent(name: str) -> Any:
    from rlcore.errors import MissingPluginError

    package = _LENT[name].partition(".")[0]
    if importlib.util.find_spec(package) is None:
        distribution = package.replace("_", "-")
        raise MissingPluginError(
            f"rlcore.{name} is provided by {distribution}, which is not installed: pip install {distribution}"
        )
    return getattr(importlib.import_module(_LENT[name]), name)


def __dir__() -> list[str]:
    return __all__
