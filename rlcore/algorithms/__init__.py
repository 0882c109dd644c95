"""Trainers of named algorithms over the losses, collectors and buffers of TorchRL, which a script hands over.

They are those of rlcore-plugin-torchrl. Each is `rlcore.Trainer` with hooks registered. TorchRL is not imported, unless
a part of it has to be made.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rlcore.lazy import lazy
from rlcore.plugins.known import lend, lent_to

if TYPE_CHECKING:
    from rlcore_plugin_torchrl.algorithms.off_policy import CQLTrainer as CQLTrainer
    from rlcore_plugin_torchrl.algorithms.off_policy import DDPGTrainer as DDPGTrainer
    from rlcore_plugin_torchrl.algorithms.off_policy import DQNTrainer as DQNTrainer
    from rlcore_plugin_torchrl.algorithms.off_policy import IQLTrainer as IQLTrainer
    from rlcore_plugin_torchrl.algorithms.off_policy import SACTrainer as SACTrainer
    from rlcore_plugin_torchrl.algorithms.off_policy import TD3Trainer as TD3Trainer
    from rlcore_plugin_torchrl.algorithms.offline_to_online import OfflineToOnlineTrainer as OfflineToOnlineTrainer
    from rlcore_plugin_torchrl.algorithms.on_policy import A2CTrainer as A2CTrainer
    from rlcore_plugin_torchrl.algorithms.on_policy import OnPolicyTrainer as OnPolicyTrainer
    from rlcore_plugin_torchrl.algorithms.on_policy import PPOTrainer as PPOTrainer
    from rlcore_plugin_torchrl.algorithms.on_policy import ReinforceTrainer as ReinforceTrainer
    from rlcore_plugin_torchrl.algorithms.steppers import TD3OptimizationStepper as TD3OptimizationStepper

__all__, __getattr__, __dir__ = lazy(__name__, {}, partial(lend, __name__))
__all__ += sorted(lent_to(__name__))
