"""Trainers of named algorithms over the losses, collectors and buffers of TorchRL, which a script hands over.

Each is `rlcore.Trainer` with hooks registered; what they are is in `recipes.py`. TorchRL is not imported, unless a part
of it has to be made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.lazy import lazy

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

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.algorithms.off_policy": "CQLTrainer DDPGTrainer DQNTrainer IQLTrainer SACTrainer TD3Trainer",
        "rlcore.algorithms.offline_to_online": "OfflineToOnlineTrainer",
        "rlcore.algorithms.on_policy": "A2CTrainer OnPolicyTrainer PPOTrainer ReinforceTrainer",
        "rlcore.algorithms.steppers": "TD3OptimizationStepper",
    },
)
