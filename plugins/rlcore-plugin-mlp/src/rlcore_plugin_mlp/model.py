"""The model component: an MLP for each part, and the policy of the actor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Self

import gymnasium
import torch
from pydantic import BaseModel, Field, PositiveInt, model_validator
from torch import Tensor, nn

from rlcore.errors import ConfigError
from rlcore.types import Context
from rlcore_plugin_mlp.by_leaf import LeafEncoder
from rlcore_plugin_mlp.distributions import UNIT_SCALE, Normal
from rlcore_plugin_mlp.leaves import ActionMask, mask_of
from rlcore_plugin_mlp.model_parts import Actor as Actor
from rlcore_plugin_mlp.model_parts import ActorPolicy as ActorPolicy
from rlcore_plugin_mlp.network import Activation, Initialisation
from rlcore_plugin_mlp.networks import Network, Networks
from rlcore_plugin_mlp.spaces import for_space
from rlcore_plugin_mlp.state_dependent import StateDependentActor, StateDependentPolicy

Part = Literal["actor", "critic", "q_values"]


class MaskedActor(Actor):
    """An actor whose forbidden actions have no probability, and no gradient.

    Args:
        network: returns a logit for every action.
        distribution: of the actions.
        mask: in the observations.
    """

    def __init__(self, network: Network, distribution: Any, mask: ActionMask) -> None:
        super().__init__(network, distribution)
        self.mask = mask

    def forward(self, observation: Tensor) -> Tensor:
        """Return the parameters of the distribution."""
        return self.mask(super().forward(observation), observation)

    def raw(self) -> Callable[[Tensor], Tensor]:
        """Return the forward pass; see `Actor.raw`."""
        logits_of, mask = self.network.raw(), self.mask
        return lambda observation: mask(logits_of(observation), observation)


class MaskedValues(nn.Module):
    """Values of all actions, of which a forbidden one is never the best.

    Args:
        network: returns a value for every action.
        mask: in the observations.
    """

    def __init__(self, network: Network, mask: ActionMask) -> None:
        super().__init__()
        self.network = network
        self.mask = mask

    def forward(self, observation: Tensor) -> Tensor:
        """Return the values `[..., action]`."""
        return self.mask(self.network(observation), observation)

    def raw(self) -> Callable[[Tensor], Tensor]:
        """Return the forward pass; see `Actor.raw`."""
        values_of, mask = self.network.raw(), self.mask
        return lambda observation: mask(values_of(observation), observation)


class SteadyActor(Actor):
    """An actor of a normal distribution whose log standard deviations are parameters, the same for all observations.

    Args:
        network: returns the locations alone.
        distribution: with the parameters location and log standard deviation.
        log_std: the initial value, for every action.
    """

    def __init__(self, network: Network, distribution: Any, log_std: float) -> None:
        super().__init__(network, distribution)
        self.log_std = nn.Parameter(torch.full((distribution.num_parameters // 2,), log_std))

    def forward(self, observation: Tensor) -> Tensor:
        """Return the parameters of the distribution."""
        return self._with_log_std(super().forward(observation))

    def of_features(self, features: Tensor) -> Tensor:
        """Return the parameters of the distribution, from what the encoder made of observations."""
        return self._with_log_std(super().of_features(features))

    def _with_log_std(self, location: Tensor) -> Tensor:
        return torch.cat([location, self.log_std.expand_as(location)], -1)

    def raw(self) -> Callable[[Tensor], Tensor]:
        """Return the forward pass; see `Actor.raw`."""
        location_of, log_std = self.network.raw(), self.log_std.detach()

        def forward(observation: Tensor) -> Tensor:
            location = location_of(observation)
            return torch.cat([location, log_std.expand_as(location)], -1)

        return forward


class MLPModel(nn.Module):
    """An MLP for each part: `actor` (with a distribution), `critic` (one value), `q_values` (one per action).

    They share no weights but those of an encoder, with `share_encoder`; `actor_and_critic` then runs it once for both.
    """

    class Config(BaseModel, extra="forbid"):
        """Shape of the networks."""

        parts: list[Part] = Field(["actor", "critic"], min_length=1, description="networks to build")
        hidden: list[PositiveInt] = Field([64, 64], description="hidden sizes of each network")
        actor_hidden: list[PositiveInt] | None = Field(None, description="of the actor; default: hidden")
        critic_hidden: list[PositiveInt] | None = Field(None, description="of the critic; default: hidden")
        activation: Activation = Field("tanh", description="tanh, relu or silu")
        initialisation: Initialisation = Field("torch", description="torch (its default) or orthogonal")
        log_std: float | None = Field(
            None,
            allow_inf_nan=False,
            description="let the log standard deviations of the actor be parameters that begin here; default: outputs "
            "of its network; with sde 0",
        )
        sde: bool = Field(False, description="explore by noise that is a function of the observation (gSDE)")
        sde_every: int = Field(
            0, ge=0, description="steps after which another one is drawn; 0: at the beginning of a batch alone"
        )
        encoder: str | None = Field(None, description="'module:Name' of a network of your own before the MLPs")
        encoder_kwargs: dict[str, Any] = Field(default_factory=dict, description="its further arguments")
        encoders: dict[str, LeafEncoder] = Field(
            default_factory=dict, description="a network for each leaf of observations that are dicts"
        )
        share_encoder: bool = Field(False, description="one encoder for all parts, instead of one for each")

        @model_validator(mode="after")
        def _counts(self) -> Self:
            if self.sde_every and not self.sde:
                raise ValueError("sde_every counts for nothing without sde = true; leave it out")
            for part in ("actor", "critic"):
                if f"{part}_hidden" in self.model_fields_set and part not in self.parts:
                    raise ValueError(f"{part}_hidden counts for nothing, as parts has no {part!r}; leave it out")
            return self

        def hidden_of(self, part: Part) -> list[int]:
            """Return the hidden sizes of a part."""
            own = {"actor": self.actor_hidden, "critic": self.critic_hidden}.get(part)
            return self.hidden if own is None else own

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        spec = context.env_spec
        self._parts = tuple(config.parts)
        mask = mask_of(spec.observation_space, spec.action_space)
        shared = Networks.of(config, spec.observation_space, context.seed("encoder")) if config.share_encoder else None
        for part in config.parts:
            steady = config.sde or config.log_std is not None
            outputs, gain, distribution = head_of(part, spec.action_space, context.device, steady)
            networks = shared or Networks.of(config, spec.observation_space, context.seed(f"{part} encoder"))
            generator = torch.Generator().manual_seed(context.seed(part))
            network = networks.network(outputs, gain, generator, config.hidden_of(part))
            self.add_module(part, _part(part, network, distribution, config, mask))
        if shared is not None and {"actor", "critic"} <= {*self._parts}:
            self.actor_and_critic = self._actor_and_critic
        if "actor" in self._parts:
            self.policy = _policy_of(self.actor, config)

    def parts(self) -> tuple[str, ...]:
        """Return the names of the networks."""
        return self._parts

    def _actor_and_critic(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        actor: Any = self.actor
        critic: Any = self.critic
        features = critic.features(observation)
        parameters = actor.of_features(features)
        if isinstance(actor, MaskedActor):
            parameters = actor.mask(parameters, observation)
        return parameters, critic.of_features(features)


def head_of(part: Part, space: gymnasium.Space[Any], device: torch.device, steady: bool) -> tuple[int, float, Any]:
    """Return outputs, orthogonal gain and distribution of a part.

    Args:
        part: which.
        space: of the actions.
        device: of the distribution.
        steady: whether the log standard deviations of the actor are no outputs.
    """
    if part == "actor":
        distribution = for_space(space, device, log_scale=steady)
        if steady and not isinstance(distribution, Normal):
            raise ConfigError(
                f"[model] log_std, sde: actions in {space} have no standard deviation; leave these keys out"
            )
        return distribution.num_parameters // (2 if steady else 1), 0.01, distribution
    if part == "critic":
        return 1, 1.0, None
    if not isinstance(space, gymnasium.spaces.Discrete):
        raise ConfigError(f"[model] part 'q_values' needs a discrete action space, not {space}")
    return int(space.n), 1.0, None


def _part(
    part: Part, network: Network, distribution: Any, config: MLPModel.Config, mask: ActionMask | None
) -> nn.Module:
    if distribution is not None and config.sde:
        return StateDependentActor(network, distribution, config.log_std or 0.0)
    if distribution is not None:
        return MaskedActor(network, distribution, mask) if mask else actor_of(network, distribution, config.log_std)
    return MaskedValues(network, mask) if part == "q_values" and mask is not None else network


def _policy_of(actor: Any, config: MLPModel.Config) -> ActorPolicy:
    return StateDependentPolicy(actor, config.sde_every or None) if config.sde else ActorPolicy(actor)


def actor_of(network: Network, distribution: Any, log_std: float | None) -> Actor:
    """Return an actor, whose log standard deviations are parameters where it is said where they begin."""
    if log_std is not None:
        return SteadyActor(network, distribution, log_std)
    if isinstance(distribution, Normal):
        _unit_scale(network, distribution)
    return Actor(network, distribution)


@torch.no_grad()
def _unit_scale(network: Network, distribution: Normal) -> None:
    """Let the scales of a normal distribution start near 1."""
    bias = network.layers[-1].bias
    assert isinstance(bias, Tensor)
    bias[distribution.num_parameters // 2 :] += UNIT_SCALE
