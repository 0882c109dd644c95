"""The loss of DQN and double DQN, and the base of all Q-learning losses."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from rlcore.learners import TargetConfig, TargetUpdater
from rlcore.types import Context, Key, Loss, offers
from rlcore_plugin_dqn.health import growing_values
from rlcore_plugin_dqn.layers import factorised
from rlcore_plugin_dqn.network import noise_arguments, noise_size
from rlcore_plugin_dqn.shifted import MasksActions, NumbersActions

NOISE: Final = "noise"
# rows of the noise in a minibatch: of the network, of its target, and of the choice of the next action
NETWORK, TARGET, _CHOICE = 0, 1, 2
Error = Literal["smooth_l1", "l1", "l2"]


def _half_l2(value: Tensor, target: Tensor, reduction: str) -> Tensor:
    return nn.functional.huber_loss(value, target, reduction=reduction, delta=math.inf)  # never linear: in one kernel


# functions of values, targets and the reduction of torch: "mean" or "none"
ERRORS: Final[dict[Error, Callable[..., Tensor]]] = {
    "smooth_l1": nn.functional.smooth_l1_loss,
    "l1": nn.functional.l1_loss,
    "l2": _half_l2,
}


class QLearningConfig(TargetConfig):
    """Keys of all Q-learning losses."""

    gamma: float = Field(0.99, ge=0, le=1, description="discount")
    double: bool = Field(False, description="the network chooses the next action, and its target values it")


class QLearningLoss(nn.Module, Loss):
    """Base of Q-learning losses: holds the networks, moves the target, and chooses next actions.

    A noisy network gets one noise for all samples of an update. The network, its target and, with `double`, the choice
    of the next action have different noise (Fortunato et al., 2018, arXiv 1706.10295, section 3.1).

    Attributes:
        target_updater: moves `target_q_values`, called by the learner; None where the network is its own target.
        sample_noise: with noisy layers, samples the entry `noise` `[network, number]` of a minibatch.
    """

    requires = ("q_values", "target_q_values")
    reads: tuple[Key, ...] = (
        "observation",
        "action",
        ("next", "observation"),
        ("next", "reward"),
        ("next", "terminated"),
    )

    def __init__(self, config: QLearningConfig, context: Context) -> None:
        super().__init__()
        model: Any = context.model
        self.q_values = model.q_values
        self.target_q_values = model.target_q_values
        self.target_updater: TargetUpdater | None = None
        if self.target_q_values is not self.q_values:
            pair = (self.q_values, self.target_q_values)
            self.target_updater = TargetUpdater([pair], config.target_interval, config.target_tau)
        self._mask = model.action_mask if offers(model, MasksActions) else None
        self._first_action = model.first_action if offers(model, NumbersActions) else 0
        self._gamma = config.gamma
        self._double = config.double
        self._noise_size = noise_size(self.q_values)
        if self._noise_size:  # a learner keeps a generator for a loss that has the method
            self.sample_noise = self._sample_noise  # type: ignore[method-assign]

    def _sample_noise(self, samples: int, generator: torch.Generator) -> Mapping[Key, Tensor]:
        """Return the noise of the network, of its target and of the choice, on the device of the generator."""
        return {NOISE: factorised((3 if self._double else 2, self._noise_size), generator)}

    def _noise(self, minibatch: Mapping[Key, Tensor], network: int) -> Tensor | None:
        """Return the noise `[number]` of a network; None without noisy layers."""
        return minibatch[NOISE][network] if self._noise_size else None

    def _action_index(self, minibatch: Mapping[Key, Tensor]) -> Tensor:
        """Return the actions of a minibatch as indices of the values of a network, from 0 on."""
        action = minibatch["action"]
        return action - self._first_action if self._first_action else action

    def _discount(self, minibatch: Mapping[Key, Tensor]) -> Tensor | float:
        """Return the discount of the next value; a tensor where transitions join several steps."""
        steps = minibatch.get("steps_to_next_obs", None)
        return self._gamma if steps is None else self._gamma**steps

    def _next_action(self, minibatch: Mapping[Key, Tensor], target_values: Tensor) -> Tensor:
        """Return the best allowed next actions, int64 `[sample, 1]`, by the network (`double`) or its target."""
        if self._double:
            noise = self._noise(minibatch, _CHOICE)
            target_values = self.q_values(minibatch["next", "observation"], *noise_arguments(noise))
        if self._mask is not None:
            target_values = self._mask(target_values, minibatch["next", "observation"])
        return target_values.argmax(-1, keepdim=True)


def weighted_mean(errors: Tensor, minibatch: Mapping[Key, Tensor]) -> Tensor:
    """Return the mean of errors `[sample, 1]`, each times its importance weight from a prioritized buffer."""
    weight = minibatch.get("priority_weight", None)
    return errors.mean() if weight is None else (errors * weight).mean()


class DQNLoss(QLearningLoss):
    """The error of `r + gamma * max_a Q_target(s', a)` (Mnih et al., 2015); double after van Hasselt et al., 2016.

    The value after a terminated step is zero, after a truncated one it is that of the last observation. Reads
    `observation`, `action`, and under `next` `observation`, `reward`, `terminated`; where they are there, also
    `steps_to_next_obs` and `priority_weight`. Returns `loss_q`, the metric `q_value` (mean value of the actions taken)
    and `td_error` `[sample, 1]`.
    """

    class Config(QLearningConfig):
        """DQN."""

        error: Error = Field("l2", description="l2 (half the squared error), smooth_l1 or l1; see the page of DQN")

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__(config, context)
        self._error_name = config.error
        self._error = ERRORS[config.error]

    def health_checks(self) -> Mapping[str, Callable[[Mapping[str, float], float], str | None]]:
        """Return the checks that the hook `health` makes of a run with this loss."""
        return {"linear-error": partial(growing_values, gamma=self._gamma, error=self._error_name)}

    def forward(self, minibatch: Mapping[Key, Tensor]) -> dict[str, Tensor]:
        """Return the loss and metrics of a minibatch."""
        values = self.q_values(minibatch["observation"], *noise_arguments(self._noise(minibatch, NETWORK)))
        value = values.gather(-1, self._action_index(minibatch).unsqueeze(-1))
        target, number = self._target(minibatch), value.detach()
        return {
            "loss_q": self._mean_error(value, target, minibatch),
            "q_value": number.mean(),
            "td_error": target - number,
        }

    def _mean_error(self, value: Tensor, target: Tensor, minibatch: Mapping[Key, Tensor]) -> Tensor:
        if minibatch.get("priority_weight", None) is None:
            return self._error(value, target, reduction="mean")  # one kernel in place of several
        return weighted_mean(self._error(value, target, reduction="none"), minibatch)

    @torch.no_grad()
    def _target(self, minibatch: Mapping[Key, Tensor]) -> Tensor:
        noise = self._noise(minibatch, TARGET)
        values = self.target_q_values(minibatch["next", "observation"], *noise_arguments(noise))
        if self._double or self._mask is not None:
            best = values.gather(-1, self._next_action(minibatch, values))
        else:
            best = values.amax(-1, keepdim=True)
        # in place: `best` is a new tensor, and nothing else reads it
        following = best.masked_fill_(minibatch["next", "terminated"], 0.0)
        reward, discount = minibatch["next", "reward"], self._discount(minibatch)
        if isinstance(discount, float):
            return torch.add(reward, following, alpha=discount)  # one kernel in place of two
        return reward + discount * following  # type: ignore[no-any-return]
