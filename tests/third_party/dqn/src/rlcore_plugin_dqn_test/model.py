"""The Q-network, its target, and the policy that explores with them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import gymnasium
import torch
from pydantic import BaseModel, Field
from torch import Tensor, nn

from rlcore import ConfigError, Context, Progress


class EpsilonGreedy:
    """Takes a random action with probability epsilon, which falls linearly with the frames of the run."""

    def __init__(self, network: nn.Module, num_actions: int, config: QNetworks.Config, progress: Progress) -> None:
        self._network = network
        self._num_actions = num_actions
        self._config = config
        self._progress = progress
        self.epsilon = config.epsilon_start

    def draw(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        """Draw two numbers between 0 and 1 per step: whether to explore, and the action then."""
        return torch.rand(steps, num_envs, 2, generator=generator, device=generator.device)

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions `[env]` and the values of all actions."""
        values = self._network(observation)
        random = (noise[..., 1] * self._num_actions).long()
        return torch.where(noise[..., 0] < self.epsilon, random, values.argmax(-1)), values

    def describe(self, parameters: Tensor, action: Tensor) -> Mapping[str, Tensor]:
        """Return nothing: the loss needs no more than the transition."""
        return {}

    def mode(self, observation: Tensor) -> Tensor:
        """Return the greedy actions."""
        return self._network(observation).argmax(-1)

    def refresh(self) -> None:
        """Set epsilon for the frames collected so far."""
        config = self._config
        done = min(1.0, self._progress.fraction / config.epsilon_fraction)
        self.epsilon = config.epsilon_start + done * (config.epsilon_end - config.epsilon_start)


class QNetworks(nn.Module):
    """`q_values`, one value per action, and `target_q_values`, which no optimizer moves."""

    class Config(BaseModel, extra="forbid"):
        """The networks and their exploration."""

        hidden: list[int] = Field([120, 84], description="hidden sizes")
        epsilon_start: float = Field(1.0, ge=0, le=1, description="fraction of random actions at the beginning")
        epsilon_end: float = Field(0.05, ge=0, le=1, description="fraction of random actions at the end")
        epsilon_fraction: float = Field(0.5, gt=0, le=1, description="fraction of the run in which it falls")

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        spaces = context.env_spec.observation_space, context.env_spec.action_space
        if not isinstance(spaces[0], gymnasium.spaces.Box) or not isinstance(spaces[1], gymnasium.spaces.Discrete):
            raise ConfigError(f"[model] q-networks needs a Box and a Discrete space, not {spaces[0]} and {spaces[1]}")
        num_actions = int(spaces[1].n)
        sizes = [spaces[0].shape[0], *config.hidden, num_actions]
        self.q_values = _network(sizes, torch.Generator().manual_seed(context.seed("weights")))
        self.target_q_values = _network(sizes, torch.Generator())
        self.target_q_values.load_state_dict(self.q_values.state_dict())
        self.target_q_values.requires_grad_(False)
        self.policy = EpsilonGreedy(self.q_values, num_actions, config, context.progress)

    def parts(self) -> tuple[str, ...]:
        """Return the names of the networks."""
        return ("q_values", "target_q_values")


def _network(sizes: list[int], generator: torch.Generator) -> nn.Sequential:
    layers: list[Any] = []
    for inputs, outputs in pairwise(sizes):
        layer = nn.Linear(inputs, outputs)
        bound = inputs**-0.5
        with torch.no_grad():
            layer.weight.uniform_(-bound, bound, generator=generator)
            layer.bias.uniform_(-bound, bound, generator=generator)
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])
