"""The losses of C51 and QR-DQN, which learn distributions of returns instead of their means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import torch
from pydantic import Field
from torch import Tensor

from rlcore.errors import ConfigError
from rlcore.types import Context, Key
from rlcore_plugin_dqn.health import narrow_support
from rlcore_plugin_dqn.loss import NETWORK, TARGET, QLearningConfig, QLearningLoss, weighted_mean
from rlcore_plugin_dqn.network import CategoricalQNetwork, QuantileQNetwork, of_action


class C51Loss(QLearningLoss):
    """The cross entropy between a distribution of the return and its projected target (Bellemare et al., 2017).

    Algorithm 1 of arXiv 1707.06887; `double` as in Hessel et al., 2018. Reads the entries of `DQNLoss`. Returns
    `loss_q`, the metric `q_value` (mean value of the actions) and the priorities `td_error` `[sample, 1]`: the cross
    entropy of each sample less the entropy of its target, which is their divergence.

    Raises:
        ConfigError: the model has plain values.
    """

    Config = QLearningConfig

    def __init__(self, config: QLearningConfig, context: Context) -> None:
        super().__init__(config, context)
        if not isinstance(self.q_values, CategoricalQNetwork):
            raise ConfigError(
                "[loss] c51 needs distributions over fixed values; set [model] atoms = 51, with v_min and v_max around "
                "the discounted returns, and leave out quantiles"
            )

    def health_checks(self) -> Mapping[str, Callable[[Mapping[str, float], float], str | None]]:
        """Return the checks that the hook `health` makes of a run with this loss."""
        support: Tensor = self.q_values.support
        v_min, v_max = float(support[0]), float(support[-1])
        return {"support": partial(narrow_support, gamma=self._gamma, v_min=v_min, v_max=v_max)}

    def forward(self, minibatch: Mapping[Key, Tensor]) -> dict[str, Tensor]:
        """Return the loss and metrics of a minibatch."""
        target = self._target(minibatch)
        logits = self.q_values.logits(minibatch["observation"], self._noise(minibatch, NETWORK))
        log_probs = of_action(logits, self._action_index(minibatch)).log_softmax(-1)
        errors = -(target * log_probs).sum(-1, keepdim=True)
        with torch.no_grad():
            divergence = errors + torch.special.xlogy(target, target).sum(-1, keepdim=True)
            value = (log_probs.exp() @ self.q_values.support).mean()
        return {"loss_q": weighted_mean(errors, minibatch), "q_value": value, "td_error": divergence}

    @torch.no_grad()
    def _target(self, minibatch: Mapping[Key, Tensor]) -> Tensor:
        """Return the projected distribution of the return `[sample, atom]`."""
        logits = self.target_q_values.logits(minibatch["next", "observation"], self._noise(minibatch, TARGET))
        action = self._next_action(minibatch, self.target_q_values.expected(logits))
        probs = of_action(logits, action).softmax(-1)
        support: Tensor = self.target_q_values.support
        goes_on = ~minibatch["next", "terminated"]
        returns = minibatch["next", "reward"] + self._discount(minibatch) * goes_on * support
        return project(returns, probs, support)


def project(returns: Tensor, probs: Tensor, support: Tensor) -> Tensor:
    """Project a distribution onto `support`: each probability is split between the two nearest atoms.

    Args:
        returns: the values of the distribution, `[sample, atom]`; values outside of the support move to its ends.
        probs: the probabilities of these values, `[sample, atom]`.
        support: values at equal distances, `[atom]`.

    Returns:
        Probabilities `[sample, atom]`.
    """
    distance = support[1] - support[0]
    clamped = returns.clamp(min=support[0], max=support[-1])
    apart = (clamped.unsqueeze(-1) - support).abs() / distance  # [sample, from, to]
    return (probs.unsqueeze(-1) * (1 - apart).clamp(min=0)).sum(-2)


class QuantileLoss(QLearningLoss):
    """The quantile Huber loss between quantiles of the return and those of its target (Dabney et al., 2018).

    Algorithm 1 and equation 10 of arXiv 1710.10044: summed over the quantiles, a mean over those of the target. Reads
    the entries of `DQNLoss`. Returns `loss_q`, the metric `q_value` (mean value of the actions) and the priorities
    `td_error` `[sample, 1]`: the loss of each sample.

    Raises:
        ConfigError: the model has no quantiles.
    """

    class Config(QLearningConfig):
        """QR-DQN."""

        kappa: float = Field(1.0, ge=0, description="where the error turns from squared to linear; 0: linear at once")

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__(config, context)
        self._kappa = config.kappa
        if not isinstance(self.q_values, QuantileQNetwork):
            raise ConfigError(
                "[loss] qr-dqn needs quantiles of values; set [model] quantiles = 200, and leave out atoms"
            )

    def forward(self, minibatch: Mapping[Key, Tensor]) -> dict[str, Tensor]:
        """Return the loss and metrics of a minibatch."""
        by_action = self.q_values.quantiles(minibatch["observation"], self._noise(minibatch, NETWORK))
        quantiles = of_action(by_action, self._action_index(minibatch))
        errors = quantile_huber(quantiles, self._target(minibatch), self.q_values.fractions, self._kappa)
        return {
            "loss_q": weighted_mean(errors, minibatch),
            "q_value": quantiles.detach().mean(),
            "td_error": errors.detach(),
        }

    @torch.no_grad()
    def _target(self, minibatch: Mapping[Key, Tensor]) -> Tensor:
        """Return the quantiles of the return `[sample, quantile]`."""
        by_action = self.target_q_values.quantiles(minibatch["next", "observation"], self._noise(minibatch, TARGET))
        action = self._next_action(minibatch, self.target_q_values.expected(by_action))
        goes_on = ~minibatch["next", "terminated"]
        following = of_action(by_action, action)
        return minibatch["next", "reward"] + self._discount(minibatch) * goes_on * following


def quantile_huber(quantiles: Tensor, target: Tensor, fractions: Tensor, kappa: float) -> Tensor:
    """Return the quantile Huber loss of each sample, `[sample, 1]` (Dabney et al., 2018, equations 9 and 10).

    `sum_i mean_j |fraction_i - [u < 0]| huber(u) / kappa` with `u = target_j - quantile_i`; for `kappa = 0` with `|u|`
    in place of the Huber loss.

    Args:
        quantiles: `[sample, quantile]`, with gradients.
        target: `[sample, number]`, each of them as likely.
        fractions: of the return below each quantile, `[quantile]`.
        kappa: where the Huber loss turns linear.
    """
    # [sample, quantile, number]: the largest tensors of the loss, so as few passes over them as possible
    difference = target.unsqueeze(1) - quantiles.unsqueeze(2)
    with torch.no_grad():
        slope = difference.clamp(-kappa, kappa).div_(kappa) if kappa else difference.sign()
        half = 0.5 * kappa * slope
        fraction = fractions.unsqueeze(-1)
        slope = torch.where(difference < 0, 1 - fraction, fraction).mul_(slope)
    # the Huber loss is linear in its slope, so a slope without a gradient gives the right one
    return (slope * (difference - half)).mean(2).sum(1, keepdim=True)
