"""Trainers of named algorithms over the losses, collectors and buffers of TorchRL, which a script hands over.

Each is `rlcore.Trainer` with hooks registered; what they are is in `recipes.py`. TorchRL is not imported, unless a part
of it has to be made.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rlcore.algorithms.off_policy import CQLTrainer as CQLTrainer
    from rlcore.algorithms.off_policy import DDPGTrainer as DDPGTrainer
    from rlcore.algorithms.off_policy import DQNTrainer as DQNTrainer
    from rlcore.algorithms.off_policy import IQLTrainer as IQLTrainer
    from rlcore.algorithms.off_policy import SACTrainer as SACTrainer
    from rlcore.algorithms.off_policy import TD3Trainer as TD3Trainer
    from rlcore.algorithms.offline_to_online import OfflineToOnlineTrainer as OfflineToOnlineTrainer
    from rlcore.algorithms.on_policy import A2CTrainer as A2CTrainer
    from rlcore.algorithms.on_policy import OnPolicyTrainer as OnPolicyTrainer
    from rlcore.algorithms.on_policy import PPOTrainer as PPOTrainer
    from rlcore.algorithms.on_policy import ReinforceTrainer as ReinforceTrainer
    from rlcore.algorithms.steppers import TD3OptimizationStepper as TD3OptimizationStepper

_PLACES: Final = {
    "A2CTrainer": "on_policy",
    "CQLTrainer": "off_policy",
    "DDPGTrainer": "off_policy",
    "DQNTrainer": "off_policy",
    "IQLTrainer": "off_policy",
    "OfflineToOnlineTrainer": "offline_to_online",
    "OnPolicyTrainer": "on_policy",
    "PPOTrainer": "on_policy",
    "ReinforceTrainer": "on_policy",
    "SACTrainer": "off_policy",
    "TD3OptimizationStepper": "steppers",
    "TD3Trainer": "off_policy",
}
__all__ = sorted(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'rlcore.algorithms' has no attribute {name!r}")
    return getattr(importlib.import_module(f"rlcore.algorithms.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
