"""V-trace: values and advantages from actions that an earlier policy chose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import torch
from pydantic import BaseModel, Field
from rlcore_plugin_ppo.estimator import discounted_sum
from rlcore_plugin_ppo.state_values import StateValues
from torch import Tensor

from rlcore.buffers import rows
from rlcore.types import FIRST, POLICY_STATE, Context, Key, has_memory, offers
from rlcore_plugin_vtrace.old_policy import OLD_LOG_PROB, WithOldPolicy

if TYPE_CHECKING:
    from tensordict import TensorDict


class VTrace:
    """Value targets and advantages by clipped importance weights (Espeholt et al., 2018, arXiv 1802.01561, section 4).

    The weight of a step is how much likelier its action is now than when it was chosen. With weights of 1 the value
    targets are those of `GAE`. The advantage of a step is `rho (r + gamma v' - V)`, where `v'` is the value target of
    the step after it. "Now" is the policy that is trained, or the target network of the loss `appo`.
    """

    requires = ("actor", "critic")
    takes_memory = True
    writes: tuple[Key, ...] = (OLD_LOG_PROB,)

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
        self._values = StateValues(context)
        self._inputs = ("observation", POLICY_STATE, FIRST) if has_memory(model) else ("observation",)
        loss = context.built.get("loss")
        self._loss: WithOldPolicy | None = loss if offers(loss, WithOldPolicy) else None

    @torch.no_grad()
    def __call__(self, batch: TensorDict) -> None:
        """Set `state_value`, `advantage`, `value_target` and `old_log_prob`, each `[env, time, 1]`.

        The last is the log-probability of the actions under the policy of the weights.
        """
        config, following = self._config, batch.get("next")
        log_prob = self._log_prob(batch)
        ratio = (log_prob - batch.get("sample_log_prob")).exp()
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
        batch.set(OLD_LOG_PROB, log_prob)

    def _log_prob(self, batch: TensorDict) -> Tensor:
        """Return the log-probabilities of the actions of a batch now, `[env, time, 1]`."""
        old: Any = None if self._loss is None else self._loss.old_policy()
        actor = self._actor if old is None else old
        parameters = actor(*(rows(batch.get(key)) for key in self._inputs))
        log_prob = actor.distribution.log_prob(parameters, rows(batch.get("action")))
        return log_prob.unflatten(0, batch.batch_size[::-1]).transpose(0, 1)  # type: ignore[no-any-return]
