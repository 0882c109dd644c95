"""Networks of a script's own: `ModelCls` of rlpyt's agents as a model of rlcore."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import torch
from pydantic import BaseModel, Field
from rlcore_plugin_dqn.policy import EpsilonConfig, EpsilonGreedy
from rlcore_plugin_mlp.distributions import Normal
from rlcore_plugin_mlp.model_parts import ActorPolicy
from rlcore_plugin_mlp.spaces import for_space
from torch import Tensor, nn

from rlcore.envs import FLATTENED, Packed
from rlcore.errors import FROM_OUTSIDE, ConfigError, describe
from rlcore.types import Context, EnvSpec
from rlcore_plugin_runners.references import found


class NetworkConfig(BaseModel):
    """Which network, and its arguments."""

    network: str = Field(description="'module:Name' of a torch module")
    network_kwargs: dict[str, Any] = Field(default_factory=dict, description="its arguments, besides those of the env")


class OwnActor(nn.Module):
    """The policy of a network: observations `[..., *shape]` to the parameters of a distribution over actions."""

    def __init__(self, network: nn.Module, distribution: Any) -> None:
        super().__init__()
        self.network, self.distribution = network, distribution

    def forward(self, observation: Tensor) -> Tensor:
        """Return the parameters of the distribution."""
        *policy, _ = self.network(observation, None, None)
        return self.of_outputs(policy)

    def of_outputs(self, policy: list[Tensor]) -> Tensor:
        """Return the parameters, of probabilities, or of means and log standard deviations."""
        if isinstance(self.distribution, Normal):
            mean, log_std = policy
            return torch.cat([mean, log_std.expand_as(mean)], -1)
        (probabilities,) = policy
        return probabilities.clamp_min(torch.finfo(probabilities.dtype).tiny).log()

    def raw(self) -> Callable[[Tensor], Tensor]:
        """Return the forward pass without gradients."""
        return torch.no_grad()(self.forward)


class OwnCritic(nn.Module):
    """The values of a network: observations `[..., *shape]` to values `[..., 1]`."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, observation: Tensor) -> Tensor:
        """Return the values."""
        value: Tensor = self.network(observation, None, None)[-1]
        return value.unsqueeze(-1)

    def raw(self) -> Callable[[Tensor], Tensor]:
        """Return the forward pass without gradients."""
        return torch.no_grad()(self.forward)


class PolicyNetwork(nn.Module):
    """A network that returns probabilities and a value, or means, log standard deviations and a value.

    It is called with observations `[..., *shape]`, and None for the last action and the last reward. Its constructor is
    given those of `image_shape`, `observation_shape`, `output_size` and `action_size` that it takes.
    """

    class Config(NetworkConfig, extra="forbid"):
        """Which network, and its arguments."""

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        spec = context.env_spec
        distribution = for_space(spec.action_space, context.device)
        network = network_of(config, context)
        self.actor, self.critic = OwnActor(network, distribution), OwnCritic(network)
        outputs = _tried(network, spec)
        if not isinstance(outputs, tuple) or len(outputs) != (3 if isinstance(distribution, Normal) else 2):
            asked = "mean, log_std, value" if isinstance(distribution, Normal) else "probabilities, value"
            raise ConfigError(
                f"ModelCls = {config.network}: it has to return ({asked}) for actions in {spec.action_space}"
            )
        self.policy = ActorPolicy(self.actor)  # type: ignore[arg-type]

    def parts(self) -> tuple[str, ...]:
        """Return the names of the parts."""
        return ("actor", "critic")

    def actor_and_critic(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """Return what both make of observations, by one pass of the network."""
        *policy, value = self.actor.network(observation, None, None)
        return self.actor.of_outputs(policy), value.unsqueeze(-1)


class OwnValues(nn.Module):
    """The action values of a network: observations `[..., *shape]` to values `[..., action]`."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, observation: Tensor) -> Tensor:
        """Return the values of all actions."""
        return self.network(observation, None, None)  # type: ignore[no-any-return]

    def raw(self) -> Callable[[Tensor], Tensor]:
        """Return the forward pass without gradients."""
        return torch.no_grad()(self.forward)


class ValueNetwork(nn.Module):
    """A network that returns the values of all actions, and its target; called and constructed as `PolicyNetwork` says.

    Attributes:
        schedulable: `epsilon`, as of the model q-network.
        first_action: 0.
        action_mask: None.
    """

    class Config(NetworkConfig, EpsilonConfig):
        """Which network, its arguments, and how it explores."""

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        spec = context.env_spec
        if not isinstance(spec.action_space, gymnasium.spaces.Discrete) or spec.action_space.start:
            raise ConfigError(
                f"ModelCls = {config.network}: actions count from 0, and are not those of {spec.action_space}"
            )
        actions = int(spec.action_space.n)
        self.first_action, self.action_mask = 0, None
        self.q_values = OwnValues(network_of(config, context))
        outputs = _tried(self.q_values.network, spec)
        if not isinstance(outputs, Tensor) or outputs.shape[-1:] != (actions,):
            raise ConfigError(
                f"ModelCls = {config.network}: it has to return values [..., {actions}], one for each action"
            )
        self.target_q_values = copy.deepcopy(self.q_values).requires_grad_(False)
        self.policy = EpsilonGreedy(self.q_values, actions, config, context.progress)
        self.schedulable = self.policy.schedulable

    def parts(self) -> tuple[str, ...]:
        """Return the names of the networks."""
        return ("q_values", "target_q_values")


def network_of(config: NetworkConfig, context: Context) -> nn.Module:
    """Return the network, whose weights follow from the seed of the run.

    Raises:
        ConfigError: it is no torch module, or its constructor fails.
    """
    kind, spec = found(config.network), context.env_spec
    if not (isinstance(kind, type) and issubclass(kind, nn.Module)):
        raise ConfigError(f"ModelCls = {config.network}: it is no class of torch.nn.Module")
    if isinstance(spec.observation_space, Packed):
        raise ConfigError(
            f"ModelCls = {config.network} takes observations that are one array, not {spec.observation_space}; the "
            "transform 'flatten' makes one of them",
            remedy=FLATTENED,
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(context.seed("network"))
        try:
            return kind(**_of_env(kind, spec), **config.network_kwargs)
        except FROM_OUTSIDE:
            raise
        except Exception as error:
            raise ConfigError(f"ModelCls = {config.network} cannot be made: {describe(error)}") from error


def _of_env(kind: type[nn.Module], spec: EnvSpec) -> Mapping[str, Any]:
    """Return the arguments about the env that a constructor takes."""
    space = spec.action_space
    size = int(space.n) if isinstance(space, gymnasium.spaces.Discrete) else int(torch.Size(space.shape or ()).numel())
    shapes = dict.fromkeys(("image_shape", "observation_shape"), tuple(spec.observation_space.shape or ()))
    arguments = {**shapes, **dict.fromkeys(("output_size", "action_size"), size)}
    taken = inspect.signature(kind).parameters
    return {name: value for name, value in arguments.items() if name in taken}


def _tried(network: nn.Module, spec: EnvSpec) -> Any:
    """Return what a network makes of one observation.

    Raises:
        ConfigError: it fails, as where it reads the last action or reward, which are None.
    """
    observation = torch.from_numpy(spec.observation_space.sample()[None] * 0)
    try:
        with torch.no_grad():
            return network(observation, None, None)
    except FROM_OUTSIDE:
        raise
    except Exception as error:
        raise ConfigError(
            f"ModelCls: {type(network).__name__}(observation, None, None) fails: {describe(error)}. There is no last "
            "action and no last reward; the transform last-step writes them into observations"
        ) from error
