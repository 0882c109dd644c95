"""The loss of R2D2: the error of action values over sequences, for networks with memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

import torch
from pydantic import Field
from rlcore_plugin_replay.sequence_keys import BOOTSTRAP, READ
from rlcore_plugin_replay.td_errors import WEIGHT
from torch import Tensor

from rlcore.errors import ConfigError
from rlcore.types import FIRST, MASK, POLICY_STATE, Context, Key, has_memory, offers
from rlcore_plugin_dqn.loss import ERRORS, Error, QLearningConfig, QLearningLoss

EPSILON: Final = 1e-3  # of the rescaling: its slope where values are large


class Unrolled(Protocol):
    """A part with memory and a method that returns the state after a sequence."""

    def after(self, observation: Tensor, state: Tensor, first: Tensor) -> Tensor:
        """Return the state `[sequence, *state]` after rows `[time, sequence, ...]`."""
        ...


class R2D2Loss(QLearningLoss):
    """The error of n-step double Q-learning over sequences (Kapturowski et al., 2019, section 2.3 and table 2).

    Network and target go through each sequence once, from its stored state. The first `burn_in` rows only update that
    state, each network with its own weights and without gradients. Targets are rescaled values,
    `h(r + gamma^n h^-1(Q_target))` with `h(x) = sign(x) (sqrt(|x| + 1) - 1) + 0.001 x` (Pohlen et al., 2018, arXiv
    1805.11593). The value after a terminated step is zero, after a truncated one that of the last observation.

    Reads `observation`, `first`, `action`, `policy_state`, the mask, `steps_to_next_obs`, `bootstrap_row`, and under
    `next` `reward` and `terminated`, as the buffer `replay:sequences` has them; where it is there, `priority_weight`.
    Returns `loss_q`, the metric `q_value` (mean value of the actions taken, as returns) and `td_error`
    `[time, sequence, 1]`, 0 where no step is trained on.

    Attributes:
        burn_in: rows at the beginning of each sequence that are not trained on; set by the buffer.
        takes_memory: True.

    Raises:
        ConfigError: the model has no memory.
    """

    takes_memory = True
    reads: tuple[Key, ...] = READ

    class Config(QLearningConfig):
        """R2D2."""

        double: bool = Field(True, description="the network chooses the next action, and its target values it")
        error: Error = Field("l2", description="l2 (half the squared error), smooth_l1 or l1; see the page of DQN")
        rescale: bool = Field(True, description="learn values whose size grows as the root of returns")

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__(config, context)
        if not has_memory(context.model) or not offers(self.q_values, Unrolled):
            raise ConfigError(
                "[loss] r2d2 learns from sequences with the state of a policy with memory, and this model has none; "
                'take the model "dqn:recurrent-q-network", or the loss "dqn"'
            )
        self.burn_in = 0
        self._error = ERRORS[config.error]
        self._rescale = config.rescale

    def forward(self, minibatch: Mapping[Key, Tensor]) -> dict[str, Tensor]:
        """Return the loss and metrics of a minibatch."""
        trained = {key: minibatch[key][self.burn_in :] for key in self.reads if key != POLICY_STATE}
        values = self._unroll(self.q_values, minibatch)
        with torch.no_grad():
            target = self._target(trained, self._unroll(self.target_q_values, minibatch), values)
        value = values.gather(-1, self._action_index(trained).unsqueeze(-1))
        mask = trained[MASK]
        count = mask.sum().clamp(min=1)
        errors = self._error(value, target, reduction="none")
        weight = minibatch.get(WEIGHT, None)
        if weight is not None:
            errors = errors * weight[self.burn_in :]
        with torch.no_grad():
            td_error = torch.where(mask, target - value, 0)
            burn_in = td_error.new_zeros(self.burn_in, *td_error.shape[1:])
            returns = torch.where(mask, self._returns(value), 0)
        return {
            "loss_q": torch.where(mask, errors, 0).sum() / count,
            "q_value": returns.sum() / count,
            "td_error": torch.cat([burn_in, td_error]),
        }

    def _unroll(self, network: Any, minibatch: Mapping[Key, Tensor]) -> Tensor:
        """Return the values `[time, sequence, action]` of a network, for the rows after the burn-in."""
        state, rows = minibatch[POLICY_STATE], (minibatch["observation"], minibatch[FIRST])
        if self.burn_in:
            with torch.no_grad():
                observation, first = (entry[: self.burn_in] for entry in rows)
                state = network.after(observation, state, first)
        observation, first = (entry[self.burn_in :] for entry in rows)
        return network(observation, state, first)  # type: ignore[no-any-return]

    def _target(self, trained: Mapping[Key, Tensor], target_values: Tensor, values: Tensor) -> Tensor:
        """Return the targets of the values of the actions, `[time, sequence, 1]`."""
        ranking = values if self._double else target_values
        if self._mask is not None:
            ranking = self._mask(ranking, trained["observation"])
        best = target_values.gather(-1, ranking.argmax(-1, keepdim=True))
        following = self._returns(best.gather(0, trained[BOOTSTRAP] - self.burn_in))
        discount = self._discount(trained) * ~trained["next", "terminated"]
        target = trained["next", "reward"] + discount * following
        return rescaled(target) if self._rescale else target

    def _returns(self, values: Tensor) -> Tensor:
        """Return values as returns."""
        return returns_of(values) if self._rescale else values


def rescaled(returns: Tensor) -> Tensor:
    """Return `h(x) = sign(x) (sqrt(|x| + 1) - 1) + epsilon x`, with epsilon 0.001 (Pohlen et al., 2018)."""
    # `sqrt(x + 1) - 1` as the quotient `x / (sqrt(x + 1) + 1)`: the difference would lose the digits of a small x
    return returns / ((returns.abs() + 1).sqrt() + 1) + EPSILON * returns


def returns_of(values: Tensor) -> Tensor:
    """Return the inverse of `rescaled`: `sign(x) (((sqrt(1 + 4 e (|x| + 1 + e)) - 1) / 2e)^2 - 1)`."""
    # as a quotient too, see `rescaled`
    size = values.abs() + (1 + EPSILON)
    root = 2 * size / ((1 + 4 * EPSILON * size).sqrt() + 1)
    return values.sign() * (root.square() - 1)
