"""The model component `recurrent-q-network`: a Q-network with memory, its target, and a policy that explores."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import torch
from pydantic import Field, PositiveInt
from rlcore_plugin_mlp.leaves import mask_of
from rlcore_plugin_mlp.network import MLP
from rlcore_plugin_recurrent.body import Body, BodyConfig, Kind
from rlcore_plugin_recurrent.model import RecurrentPart, RecurrentPolicy
from torch import Tensor, nn

from rlcore.types import Context, Key, Progress
from rlcore_plugin_dqn.layers import StreamedMLP
from rlcore_plugin_dqn.masked import MaskedEpsilonGreedy
from rlcore_plugin_dqn.model import actions_of
from rlcore_plugin_dqn.policy import Epsilon, EpsilonConfig, EpsilonGreedy


class RecurrentQValues(RecurrentPart):
    """Values of all actions behind a memory, called `q_values(observation, state, first)` as `rlcore.types` says."""


class RecurrentEpsilonGreedy(RecurrentPolicy):
    """Takes the action of the highest value behind a memory, or with probability epsilon a random one.

    Args:
        q_values: computes the values.
        explorer: chooses actions by values.
        first_action: the number of the first action of the env.

    Attributes:
        schedulable: `epsilon`, which a schedule may move.
    """

    writes: tuple[Key, ...] = ()

    def __init__(self, q_values: RecurrentQValues, explorer: EpsilonGreedy, first_action: int) -> None:
        super().__init__(q_values)
        self._explorer = explorer
        self._first_action = first_action
        self.schedulable: Epsilon = explorer.schedulable

    @property
    def epsilon(self) -> float:
        """Fraction of random actions in the current batch."""
        return self._explorer.epsilon

    def draw(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        """Sample the random actions of a batch `[time, env, ...]`."""
        return self._explorer.draw(steps, num_envs, generator)

    def act(self, observation: Tensor, noise: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return actions, int64 `[env]`, twice, as `describe` needs no parameters, and the next state."""
        values, following = self._step(observation, state, first)
        action = self._explorer.explored(values, observation, noise) + self._first_action
        return action, action, following

    def describe(self, parameters: Tensor, action: Tensor) -> Mapping[str, Tensor]:
        """Return nothing, as the losses need the transition alone."""
        return {}

    def mode(self, observation: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        """Return the greedy actions, int64 `[env]`, and the next state."""
        values, following = self._step(observation, state, first)
        return self._explorer.best(values, observation) + self._first_action, following

    def follow(self, progress: Progress) -> None:
        """Follow other clocks, such as those of a trainer that is built after the policy."""
        self._explorer.follow(progress)

    def refresh(self) -> None:
        """Set epsilon for the frames so far, and take the current weights."""
        super().refresh()
        self._explorer.refresh()


class RecurrentQNetworkModel(nn.Module):
    """Holds `q_values` behind an LSTM or a GRU, and `target_q_values`, which the loss `r2d2` moves.

    Attributes:
        schedulable: `epsilon`, which a schedule may move instead of `epsilon_end` and `epsilon_fraction`.
        first_action: the number of the first action of the env; the networks count from 0.
        action_mask: reads the mask of allowed actions from observations; None without one.

    Raises:
        ConfigError: the actions are not discrete; the observations are not flat, without an encoder.
    """

    class Config(BodyConfig, EpsilonConfig):
        """Shape of the network, and how it explores."""

        cell: Kind = Field("lstm", description="the recurrent layer: lstm or gru")
        hidden: list[PositiveInt] = Field([], description="hidden sizes behind it")
        duelling: bool = Field(False, description="two streams: the value of the state, the advantages of actions")

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        space = context.env_spec.observation_space
        num_actions, self.first_action = actions_of(context.env_spec.action_space, "recurrent-q-network")
        head = _head(config, num_actions, torch.Generator().manual_seed(context.seed("q_values")))
        self.q_values = RecurrentQValues(Body(config.cell, config, context), head)
        self.target_q_values = copy.deepcopy(self.q_values).requires_grad_(False)
        self.action_mask = mask_of(space, context.env_spec.action_space)
        exploration = (self.q_values, num_actions, config, context.progress)
        masked = self.action_mask
        explorer = EpsilonGreedy(*exploration) if masked is None else MaskedEpsilonGreedy(*exploration, masked)
        self.policy = RecurrentEpsilonGreedy(self.q_values, explorer, self.first_action)
        self.schedulable = self.policy.schedulable

    def parts(self) -> tuple[str, ...]:
        """Return the names of the networks."""
        return ("q_values", "target_q_values")


def _head(config: RecurrentQNetworkModel.Config, num_actions: int, generator: torch.Generator) -> nn.Module:
    """Return the network from the output of the memory to the values of all actions."""
    sizes = [config.size, *config.hidden]
    if not config.duelling:
        return MLP([*sizes, num_actions], config.activation, config.initialisation, 1.0, generator)
    return StreamedMLP(
        sizes,
        num_actions,
        1,
        activation=config.activation,
        initialisation=config.initialisation,
        duelling=True,
        sigma=None,
        casts=False,
        generator=generator,
    )
