"""The model component `q-network`: a Q-network, its target, and a policy that explores."""

from __future__ import annotations

import copy
from typing import Any, Self

import gymnasium
import torch
from pydantic import Field, PositiveInt, model_validator
from rlcore_plugin_mlp.by_leaf import LeafEncoder
from rlcore_plugin_mlp.encoder import EncodedMLP
from rlcore_plugin_mlp.leaves import mask_of
from rlcore_plugin_mlp.network import Activation, CastingMLP, Initialisation, mlp_for
from rlcore_plugin_mlp.networks import Networks
from torch import nn

from rlcore.errors import ConfigError
from rlcore.types import Context
from rlcore_plugin_dqn.layers import StreamedMLP
from rlcore_plugin_dqn.masked import MaskedEpsilonGreedy, MaskedNoisyEpsilonGreedy
from rlcore_plugin_dqn.network import CategoricalQNetwork, QuantileQNetwork, noise_size, support_of
from rlcore_plugin_dqn.policy import EpsilonConfig, EpsilonGreedy, NoisyEpsilonGreedy
from rlcore_plugin_dqn.shifted import Shifted


class QNetworkModel(nn.Module):
    """Holds `q_values`, observations `[..., inputs]` to `[..., action]`, and `target_q_values`, which the loss moves.

    With `atoms` above 1 both are a `CategoricalQNetwork`, for the loss `c51`; with `quantiles` above 1 a
    `QuantileQNetwork`, for the loss `qr-dqn`. They may have duelling streams (Wang et al., 2016, arXiv 1511.06581) and
    noisy layers (Fortunato et al., 2018, arXiv 1706.10295), which take their noise after the observation. A model with
    noisy layers explores by noise instead of random actions: epsilon is 0 unless `epsilon_start` is set.

    Attributes:
        schedulable: `epsilon`, which a schedule may move instead of `epsilon_end` and `epsilon_fraction`.
        first_action: the number of the first action of the env; the networks count from 0.
        action_mask: reads the mask of allowed actions from observations; None without one.

    Raises:
        ConfigError: the actions are not discrete; the observations are not flat, without an encoder.
    """

    class Config(EpsilonConfig):
        """Shape of the network, and how it explores."""

        hidden: list[PositiveInt] = Field([120, 84], description="hidden sizes")
        activation: Activation = Field("relu", description="tanh, relu or silu")
        initialisation: Initialisation = Field("torch", description="torch (its default) or orthogonal")
        encoder: str | None = Field(None, description="'module:Name' of a network of your own before the MLP")
        encoder_kwargs: dict[str, Any] = Field(default_factory=dict, description="its further arguments")
        encoders: dict[str, LeafEncoder] = Field(
            default_factory=dict, description="a network for each leaf of observations that are dicts"
        )
        atoms: int = Field(1, ge=1, description="values of which each action has a distribution; 1: plain values")
        v_min: float = Field(-10.0, description="the lowest of these values")
        v_max: float = Field(10.0, description="the highest of these values")
        quantiles: int = Field(1, ge=1, description="quantiles of the return of each action; 1: plain values")
        duelling: bool = Field(False, description="two streams: the value of the state, the advantages of actions")
        noisy: bool = Field(False, description="noisy layers, which explore in place of random actions")
        noisy_sigma: float = Field(0.5, gt=0, description="deviation of their noise at first, times sqrt(inputs)")

        @model_validator(mode="after")
        def _is_one_kind(self) -> Self:
            if self.v_min >= self.v_max:
                raise ValueError(f"v_min = {self.v_min} must be less than v_max = {self.v_max}")
            if self.atoms > 1 and self.quantiles > 1:
                raise ValueError(
                    f"atoms = {self.atoms} and quantiles = {self.quantiles} are two kinds of distributions; leave out "
                    "quantiles for the loss c51, or atoms for the loss qr-dqn"
                )
            return self

        @model_validator(mode="after")
        def _explores(self) -> Self:
            if not self.noisy:
                return self
            if self.epsilon_end and {"epsilon_start", "epsilon_end"} & self.model_fields_set == {"epsilon_end"}:
                raise ValueError(
                    f"epsilon_end = {self.epsilon_end}: with noisy = true epsilon starts at 0; leave epsilon_end out, "
                    "or set epsilon_start as well for random actions beside the noise"
                )
            for key in {"epsilon_start", "epsilon_end"} - self.model_fields_set:
                setattr(self, key, 0.0)
            return self

        def says_how_it_falls(self) -> list[str]:
            """Return the keys that a schedule of epsilon contradicts; not an end of 0, the default with noise."""
            keys = super().says_how_it_falls()
            return [key for key in keys if not (self.noisy and key == "epsilon_end" and self.epsilon_end == 0)]

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        spec = context.env_spec
        num_actions, self.first_action = actions_of(spec.action_space, "q-network")
        networks = Networks.of(config, spec.observation_space, context.seed("encoder"))
        generator = torch.Generator().manual_seed(context.seed("q_values"))
        network = _network(config, networks, num_actions, generator)
        self.q_values: nn.Module = network
        if config.atoms > 1:
            support = support_of(config.atoms, config.v_min, config.v_max)
            self.q_values = CategoricalQNetwork(network, num_actions, support)
        elif config.quantiles > 1:
            self.q_values = QuantileQNetwork(network, num_actions, config.quantiles)
        self.target_q_values = copy.deepcopy(self.q_values).requires_grad_(False)
        self.action_mask = mask_of(spec.observation_space, spec.action_space)
        clocks = (config, context.progress)
        explorer: EpsilonGreedy
        if self.action_mask is not None:
            masked = MaskedNoisyEpsilonGreedy if noise_size(self.q_values) else MaskedEpsilonGreedy
            explorer = masked(self.q_values, num_actions, *clocks, self.action_mask)
        else:
            policy = NoisyEpsilonGreedy if noise_size(self.q_values) else EpsilonGreedy
            explorer = policy(self.q_values, num_actions, *clocks)
        self.policy = Shifted(explorer, self.first_action) if self.first_action else explorer
        self.schedulable = self.policy.schedulable

    def parts(self) -> tuple[str, ...]:
        """Return the names of the networks."""
        return ("q_values", "target_q_values")


def _network(config: QNetworkModel.Config, networks: Networks, num_actions: int, generator: torch.Generator) -> Any:
    """Return a network from observations to the numbers of all actions, `[..., action * number]`."""
    numbers = config.atoms * config.quantiles
    if not (config.duelling or config.noisy):
        return networks.network(num_actions * numbers, 1.0, generator)
    encoder = networks.encoder
    network = StreamedMLP(
        [networks.inputs, *config.hidden],
        num_actions,
        numbers,
        activation=config.activation,
        initialisation=config.initialisation,
        duelling=config.duelling,
        sigma=config.noisy_sigma if config.noisy else None,
        casts=encoder is None and mlp_for(networks.space) is CastingMLP,
        generator=generator,
    )
    return network if encoder is None else EncodedMLP(encoder, network, networks.space.shape or ())


def actions_of(space: gymnasium.Space[object], model: str) -> tuple[int, int]:
    """Return the number of actions, and the number that the env gives the first one.

    Raises:
        ConfigError: the space is not discrete.
    """
    if not isinstance(space, gymnasium.spaces.Discrete):
        raise ConfigError(f"[model] {model} needs a discrete action space, not {space}")
    return int(space.n), int(space.start)
