"""The loss of C51: distributions of returns instead of their means."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from rlcore.errors import ConfigError
from rlcore.types import Context, Key
from rlcore_plugin_dqn.loss import QLearningConfig, QLearningLoss, weighted_mean
from rlcore_plugin_dqn.network import CategoricalQNetwork


class C51Loss(QLearningLoss):
    """The cross entropy between a distribution of the return and its projected target (Bellemare et al., 2017).

    Algorithm 1 of arXiv 1707.06887; `double` as in Hessel et al., 2018. Reads what `DQNLoss` reads. Returns `loss_q`,
    the metric `q_value` (mean value of the actions taken) and `td_error` `[sample, 1]`, which is the cross entropy of
    the sample less the entropy of its target: their divergence, as a priority.

    Raises:
        ConfigError: the model has plain values.
    """

    Config = QLearningConfig

    def __init__(self, config: QLearningConfig, context: Context) -> None:
        super().__init__(config, context)
        if not isinstance(self.q_values, CategoricalQNetwork):
            raise ConfigError("[loss] c51 needs distributions of values; set [model] atoms = 51")

    def forward(self, minibatch: Mapping[Key, Tensor]) -> dict[str, Tensor]:
        """Return the loss and metrics of a minibatch."""
        target = self._target(minibatch)
        log_probs = _of_action(self.q_values.logits(minibatch["observation"]), minibatch["action"]).log_softmax(-1)
        errors = -(target * log_probs).sum(-1, keepdim=True)
        with torch.no_grad():
            divergence = errors + torch.special.xlogy(target, target).sum(-1, keepdim=True)
            value = (log_probs.exp() @ self.q_values.support).mean()
        return {"loss_q": weighted_mean(errors, minibatch), "q_value": value, "td_error": divergence}

    @torch.no_grad()
    def _target(self, minibatch: Mapping[Key, Tensor]) -> Tensor:
        """Return the projected distribution of the return `[sample, atom]`."""
        following = minibatch["next", "observation"]
        logits = self.target_q_values.logits(following)
        action = self._next_action(following, self.target_q_values.expected(logits))
        probs = _of_action(logits, action.squeeze(-1)).softmax(-1)
        support: Tensor = self.target_q_values.support
        going = ~minibatch["next", "terminated"]
        returns = minibatch["next", "reward"] + self._discount(minibatch) * going * support
        return project(returns, probs, support)


def project(returns: Tensor, probs: Tensor, support: Tensor) -> Tensor:
    """Return the distribution over `support` `[atom]` nearest to one over other values; each is split between two.

    Args:
        returns: the values, `[sample, atom]`; those outside of the support count as its ends.
        probs: their probabilities, `[sample, atom]`.
        support: values at equal distances, `[atom]`.
    """
    distance = support[1] - support[0]
    clamped = returns.clamp(min=support[0], max=support[-1])
    apart = (clamped.unsqueeze(-1) - support).abs() / distance  # [sample, from, to]
    return (probs.unsqueeze(-1) * (1 - apart).clamp(min=0)).sum(-2)


def _of_action(logits: Tensor, action: Tensor) -> Tensor:
    """Return `[sample, atom]` of `[sample, action, atom]`."""
    return logits.gather(1, action.reshape(-1, 1, 1).expand(-1, 1, logits.shape[-1])).squeeze(1)
