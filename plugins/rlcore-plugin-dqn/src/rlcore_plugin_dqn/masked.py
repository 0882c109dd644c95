"""Epsilon-greedy policies for observations with a mask of allowed actions."""

from __future__ import annotations

from typing import Any

import torch
from rlcore_plugin_mlp.leaves import ActionMask
from torch import Tensor

from rlcore.types import Progress
from rlcore_plugin_dqn.layers import factorised
from rlcore_plugin_dqn.network import noise_arguments, noise_size
from rlcore_plugin_dqn.policy import EpsilonConfig, EpsilonGreedy


class MaskedEpsilonGreedy(EpsilonGreedy):
    """Takes the allowed action of the highest value, or with probability epsilon a random allowed one.

    Args:
        q_values: a module with a method `raw` that returns its forward pass, observations to `[..., action]`.
        num_actions: how many actions.
        schedule: of epsilon.
        progress: the clocks.
        mask: in the observations.
    """

    def __init__(
        self, q_values: Any, num_actions: int, schedule: EpsilonConfig, progress: Progress, mask: ActionMask
    ) -> None:
        super().__init__(q_values, num_actions, schedule, progress)
        self._mask = mask

    def draw(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        """Sample for a batch, float32 `[time, env, 1 + action]`: 1 for a random action, and random ranks of actions."""
        noise = torch.rand(steps, num_envs, 1 + self._num_actions, generator=generator, device=generator.device)
        noise[..., 0] = (noise[..., 0] < self.epsilon).float()
        return noise

    def foretold(self, noise: Tensor) -> tuple[Tensor, list[bool]] | None:
        """Return None: random actions depend on the mask, which is not known yet."""
        return None

    def explored(self, values: Tensor, observation: Tensor, noise: Tensor) -> Tensor:
        """Return actions, int64 `[env]`, by their values `[env, action]`, or at random where the noise says so."""
        numbers = torch.where(noise[:, :1] > 0, noise[:, 1:], values)
        return self._mask(numbers, observation).argmax(-1)

    def best(self, values: Tensor, observation: Tensor) -> Tensor:
        """Return the greedy actions, int64 `[env]`, by their values `[env, action]`."""
        return self._mask(values, observation).argmax(-1)


class MaskedNoisyEpsilonGreedy(MaskedEpsilonGreedy):
    """Acts on a noisy network, with new noise in each step and env (Fortunato et al., 2018)."""

    def draw(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        """Sample for a batch, float32 `[time, env, 1 + action + noise]`."""
        noise = factorised((steps, num_envs, noise_size(self._q_values)), generator)
        return torch.cat([super().draw(steps, num_envs, generator), noise], -1)

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions, int64 `[env]`, twice: `describe` needs no parameters."""
        of_actions, of_network = noise.tensor_split([1 + self._num_actions], dim=-1)
        action = self.explored(self._forward(observation, *noise_arguments(of_network)), observation, of_actions)
        return action, action
