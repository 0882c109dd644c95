"""The world model: a latent of an observation, what follows an action, its reward, its value; and the prior."""

from __future__ import annotations

import torch
from torch import Tensor

from rlcore_plugin_tdmpc2.layers import Ensemble, Network
from rlcore_plugin_tdmpc2.prior import Prior
from rlcore_plugin_tdmpc2.two_hot import TwoHot


class World:
    """What a planner asks of a model, over the parts that are trained; actions are in [-1, 1].

    Args:
        encoder: of observations.
        dynamics: from a latent and an action to the next latent.
        reward: from the same to logits of the reward.
        critics: from the same to logits of the value, each of an ensemble.
        prior: of actions.
        numbers: what logits stand for.
    """

    def __init__(
        self, encoder: Network, dynamics: Network, reward: Network, critics: Ensemble, prior: Prior, numbers: TwoHot
    ) -> None:
        self.encoder, self.dynamics, self.reward = encoder, dynamics, reward
        self.critics, self.prior = critics, prior
        self._numbers = numbers

    def encode(self, observation: Tensor) -> Tensor:
        """Return latents `[..., latent]` of observations `[..., *shape]` in one dimension."""
        return self.encoder.encode(observation)

    def act(self, latent: Tensor, noise: Tensor) -> Tensor:
        """Return the actions of the prior `[..., action]` that noise of the same shape picks."""
        return self.prior.action(latent, noise)

    def step(self, latent: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Return the next latents, and the rewards `[..., 1]`; one latent may be that of several actions."""
        reward = self._numbers.values(self.reward.of_pair(latent, action))
        return self.dynamics.of_pair(latent, action), reward

    def value(self, latent: Tensor, action: Tensor, members: Tensor) -> Tensor:
        """Return the mean value of some critics, for each env its own.

        Args:
            latent: `[env, sample, latent]`.
            action: `[env, sample, action]`.
            members: which critics, int64 `[env, member]`.

        Returns:
            `[env, sample]`.
        """
        of_env = members.flatten()
        inputs = torch.cat([latent, action], -1).repeat_interleave(members.shape[1], 0)
        logits = self.critics.outputs(inputs, lambda parameter: parameter.index_select(0, of_env))
        values = self._numbers.values(logits).squeeze(-1)
        return values.view(*members.shape, latent.shape[1]).mean(1)
