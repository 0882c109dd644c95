"""rlcore: a plugin-based trainer for reinforcement learning on PyTorch.

Public names are resolved when they are first used, so that `import rlcore` imports neither torch nor tensordict.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rlcore.components import Component as Component
    from rlcore.context import Context as Context
    from rlcore.env_checks import check_env_specs as check_env_specs
    from rlcore.errors import ConfigError as ConfigError
    from rlcore.errors import EnvError as EnvError
    from rlcore.errors import HookError as HookError
    from rlcore.errors import NumericalError as NumericalError
    from rlcore.errors import PluginError as PluginError
    from rlcore.errors import RlcoreError as RlcoreError
    from rlcore.errors import StorageError as StorageError
    from rlcore.exploration import ExplorationType as ExplorationType
    from rlcore.exploration import exploration_type as exploration_type
    from rlcore.exploration import set_exploration_type as set_exploration_type
    from rlcore.factory import Factory as Factory
    from rlcore.hookspecs import hookimpl as hookimpl
    from rlcore.minibatch import Minibatch as Minibatch
    from rlcore.progress import Every as Every
    from rlcore.progress import Progress as Progress
    from rlcore.rollouts import rollout as rollout
    from rlcore.run import build as build
    from rlcore.scripted import CheckpointRotation as CheckpointRotation
    from rlcore.sections import load_config as load_config
    from rlcore.stock.base import TrainerHookBase as TrainerHookBase
    from rlcore.stock.optimizer import OptimizerHook as OptimizerHook
    from rlcore.stock.target_net_updater import TargetNetUpdaterHook as TargetNetUpdaterHook
    from rlcore.stock.timing import LogTiming as LogTiming
    from rlcore.trainer import Trainer as Trainer
    from rlcore.types import EnvSpec as EnvSpec
    from rlcore.types import Episode as Episode
    from rlcore.types import EvaluationResult as EvaluationResult
    from rlcore.types import Step as Step

__version__: Final = "0.1.0"

_PLACES: Final = {
    "Component": "rlcore.components",
    "ConfigError": "rlcore.errors",
    "Context": "rlcore.context",
    "EnvError": "rlcore.errors",
    "EnvSpec": "rlcore.types",
    "Episode": "rlcore.types",
    "EvaluationResult": "rlcore.types",
    "Every": "rlcore.progress",
    "ExplorationType": "rlcore.exploration",
    "HookError": "rlcore.errors",
    "Minibatch": "rlcore.minibatch",
    "NumericalError": "rlcore.errors",
    "PluginError": "rlcore.errors",
    "Progress": "rlcore.progress",
    "RlcoreError": "rlcore.errors",
    "Step": "rlcore.types",
    "StorageError": "rlcore.errors",
    "Trainer": "rlcore.trainer",
    "LogTiming": "rlcore.stock.timing",
    "TargetNetUpdaterHook": "rlcore.stock.target_net_updater",
    "OptimizerHook": "rlcore.stock.optimizer",
    "TrainerHookBase": "rlcore.stock.base",
    "Factory": "rlcore.factory",
    "CheckpointRotation": "rlcore.scripted",
    "build": "rlcore.run",
    "check_env_specs": "rlcore.env_checks",
    "exploration_type": "rlcore.exploration",
    "rollout": "rlcore.rollouts",
    "set_exploration_type": "rlcore.exploration",
    "hookimpl": "rlcore.hookspecs",
    "load_config": "rlcore.sections",
}
__all__ = [*sorted(_PLACES), "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'rlcore' has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return __all__
