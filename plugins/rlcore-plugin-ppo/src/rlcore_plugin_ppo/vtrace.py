"""V-trace: values and advantages from actions that an earlier policy chose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import torch
from pydantic import BaseModel, Field
from torch import Tensor

from rlcore.buffers import rows
from rlcore.types import FIRST, POLICY_STATE, Context, has_memory
from rlcore_plugin_ppo.estimator import discounted_sum
from rlcore_plugin_ppo.state_values import StateValues

if TYPE_CHECKING:
    from tensordict import TensorDict


class VTrace:
    """Value targets and advantages by clipped importance weights (Espeholt et al., 2018, arXiv 1802.01561, section 4).

    The weight of a step is how much likelier its action is now than when it was chosen. With weights of 1 the value
    targets are those of `GAE`. The advantage of a step is `rho (r + gamma v' - V)`, where `v'` is the value target of
    the step after it. With the loss `a2c` this is IMPALA.
    """

    requires = ("actor", "critic")
    takes_memory = True

    class Config(BaseModel, extra="forbid"):
        """The discounts and limits, and when to estimate."""

        gamma: float = Field(0.99, ge=0, le=1, description="discount")
        lmbda: float = Field(1.0, ge=0, le=1, description="weight of longer returns")
        rho_clip: float = Field(1.0, gt=0, description="largest weight of the error of a step: whose values are found")
        c_clip: float = Field(1.0, gt=0, description="largest weight of what follows a step: how fast they are found")
        every: Literal["batch", "epoch"] = Field("epoch", description="estimate once, or again before each epoch")

    def __init__(self, config: Config, context: Context) -> None:
        self.every = config.every
        self._config = config
        model: Any = context.model
        self._actor = model.actor
        self._values = StateValues(model)
        self._inputs = ("observation", POLICY_STATE, FIRST) if has_memory(model) else ("observation",)

    @torch.no_grad()
    def __call__(self, batch: TensorDict) -> None:
        """Set `state_value`, `advantage` and `value_target`, each `[env, time, 1]`."""
        config, following = self._config, batch.get("next")
        ratio = self._ratio(batch)
        rho, trace = ratio.clamp(max=config.rho_clip), config.lmbda * ratio.clamp(max=config.c_clip)
        reward, going_on = following.get("reward"), ~following.get("done")
        value = self._values.before(batch)
        next_value = self._values.after(value, following)
        error = rho * (reward + config.gamma * next_value - value)
        correction = discounted_sum(error, config.gamma * trace * going_on)  # of the value, eq. 1
        next_target = next_value.clone()
        next_target[:, :-1] += correction[:, 1:] * going_on[:, :-1]
        batch.set("state_value", value)
        batch.set("value_target", value + correction)
        batch.set("advantage", rho * (reward + config.gamma * next_target - value))

    def _ratio(self, batch: TensorDict) -> Tensor:
        """Return how much likelier the actions are now than when they were chosen, `[env, time, 1]`."""
        parameters = self._actor(*(rows(batch.get(key)) for key in self._inputs))
        log_prob = self._actor.distribution.log_prob(parameters, rows(batch.get("action")))
        log_ratio = log_prob - rows(batch.get("sample_log_prob"))
        return log_ratio.exp().unflatten(0, batch.batch_size[::-1]).transpose(0, 1)  # type: ignore[no-any-return]
