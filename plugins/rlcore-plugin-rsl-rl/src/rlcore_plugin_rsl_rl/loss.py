"""The loss `adaptive-ppo`: PPO, and what rsl_rl's does around its updates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field
from rlcore_plugin_ppo.loss import PPOLoss

from rlcore_plugin_rsl_rl.adaptive_rate import AdaptiveRate
from rlcore_plugin_rsl_rl.model import RslRlModel
from rlcore_plugin_rsl_rl.normalizing import Normalizing

if TYPE_CHECKING:
    from rlcore import Context


class AdaptivePPOLoss(PPOLoss):
    """PPO that moves the learning rate by the divergence of each update, and feeds the normalisers of its model.

    Attributes:
        hooks: those that do it.
    """

    class Config(PPOLoss.Config):
        """PPO, and the rates."""

        desired_kl: float = Field(
            0.01, ge=0, description="divergence that the learning rate keeps to; 0 leaves it alone"
        )
        min_lr: float = Field(1e-5, gt=0, description="smallest learning rate")
        max_lr: float = Field(1e-2, gt=0, description="largest learning rate")

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__(config, context)
        hooks = [*self.hooks]
        if config.desired_kl:
            hooks.append(AdaptiveRate(config.desired_kl, config.min_lr, config.max_lr, context))
        model: Any = context.model
        if isinstance(model, RslRlModel) and model.normalizes():
            hooks.append(Normalizing(model, context.group))
        self.hooks = hooks
