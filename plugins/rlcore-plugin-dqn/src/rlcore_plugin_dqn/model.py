"""The model component: a Q-network, its target, and the policy that explores with it."""

from __future__ import annotations

import copy
from typing import Self

import gymnasium
import torch
from pydantic import Field, PositiveInt, model_validator
from rlcore_plugin_mlp.network import Activation, Initialisation
from rlcore_plugin_mlp.networks import Networks
from torch import nn

from rlcore.errors import ConfigError
from rlcore.types import Context
from rlcore_plugin_dqn.network import CategoricalQNetwork, support_of
from rlcore_plugin_dqn.policy import EpsilonConfig, EpsilonGreedy


class QNetworkModel(nn.Module):
    """`q_values`, observations `[..., inputs]` to `[..., action]`; and `target_q_values`, which the loss moves.

    With `atoms` above 1 both are `CategoricalQNetwork`, as the loss `c51` needs them.

    Attributes:
        schedulable: `epsilon`, which a schedule may move instead of `epsilon_end` and `epsilon_fraction`.
    """

    class Config(EpsilonConfig):
        """Shape of the network, and how it explores."""

        hidden: list[PositiveInt] = Field([120, 84], description="hidden sizes")
        activation: Activation = Field("relu", description="tanh, relu or silu")
        initialisation: Initialisation = Field("torch", description="torch (its default) or orthogonal")
        encoder: str | None = Field(None, description="'module:Name' of a network of your own before the MLP")
        atoms: int = Field(1, ge=1, description="values of which each action has a distribution; 1: plain values")
        v_min: float = Field(-10.0, description="the lowest of these values")
        v_max: float = Field(10.0, description="the highest of these values")

        @model_validator(mode="after")
        def _is_a_range(self) -> Self:
            if self.v_min >= self.v_max:
                raise ValueError(f"v_min = {self.v_min} must be less than v_max = {self.v_max}")
            return self

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        spec = context.env_spec
        num_actions = _num_actions(spec.action_space)
        networks = Networks.of(config, spec.observation_space, context.seed("encoder"))
        generator = torch.Generator().manual_seed(context.seed("q_values"))
        network = networks.network(num_actions * config.atoms, 1.0, generator)
        self.q_values: nn.Module = network
        if config.atoms > 1:
            support = support_of(config.atoms, config.v_min, config.v_max)
            self.q_values = CategoricalQNetwork(network, num_actions, support)
        self.target_q_values = copy.deepcopy(self.q_values).requires_grad_(False)
        self.policy = EpsilonGreedy(self.q_values, num_actions, config, context.progress)
        self.schedulable = self.policy.schedulable

    def parts(self) -> tuple[str, ...]:
        """Return the names of the networks."""
        return ("q_values", "target_q_values")


def _num_actions(space: gymnasium.Space[object]) -> int:
    """Return the number of actions.

    Raises:
        ConfigError: the space is of another kind.
    """
    if not isinstance(space, gymnasium.spaces.Discrete) or space.start != 0:
        raise ConfigError(f"[model] q-network needs a discrete action space that starts at 0, not {space}")
    return int(space.n)
