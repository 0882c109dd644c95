"""The model component: an MLP for each part, and the policy of the actor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import gymnasium
import torch
from pydantic import BaseModel, Field, PositiveInt
from torch import Tensor, nn

from rlcore.errors import ConfigError
from rlcore.types import Context
from rlcore_plugin_mlp.distributions import UNIT_SCALE, Normal
from rlcore_plugin_mlp.network import MLP, Activation, Initialisation, mlp_for
from rlcore_plugin_mlp.spaces import for_space

Part = Literal["actor", "critic", "q_values"]


class Actor(nn.Module):
    """Observations `[..., inputs]` to parameters `[..., num_parameters]` of a distribution over actions."""

    def __init__(self, network: MLP, distribution: Any) -> None:
        super().__init__()
        self.network = network
        self.distribution = distribution

    def forward(self, observation: Tensor) -> Tensor:
        """Return the parameters of the distribution."""
        return self.network(observation)  # type: ignore[no-any-return]


class ActorPolicy:
    """Samples from the actor during collection; takes the mode in evaluation."""

    writes = ("sample_log_prob",)

    def __init__(self, actor: Actor) -> None:
        self._actor = actor
        self._distribution = actor.distribution
        self._forward = actor.network.raw()

    def draw(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        """Sample the noise of a batch `[time, env, ...]`."""
        return self._distribution.noise((steps, num_envs), generator)  # type: ignore[no-any-return]

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return sampled actions, and the outputs of the network."""
        outputs = self._forward(observation)
        return self._distribution.sample(outputs, noise), outputs

    def describe(self, parameters: Tensor, action: Tensor) -> Mapping[str, Tensor]:
        """Return `sample_log_prob` `[..., 1]`."""
        return {"sample_log_prob": self._distribution.log_prob(parameters, action)}

    def mode(self, observation: Tensor) -> Tensor:
        """Return the likeliest actions."""
        return self._distribution.mode(self._forward(observation))  # type: ignore[no-any-return]

    def mean(self, observation: Tensor) -> Tensor:
        """Return the mean actions.

        Raises:
            ConfigError: actions are discrete.
        """
        return self._distribution.mean(self._forward(observation))  # type: ignore[no-any-return]

    def refresh(self) -> None:
        """Follow the weights, also after they were moved or replaced."""
        self._forward = self._actor.network.raw()


class MLPModel(nn.Module):
    """Separate MLPs: `actor` (with a distribution), `critic` (one value), `q_values` (one per action)."""

    class Config(BaseModel, extra="forbid"):
        """Shape of the networks."""

        parts: list[Part] = Field(["actor", "critic"], min_length=1, description="networks to build")
        hidden: list[PositiveInt] = Field([64, 64], description="hidden sizes")
        activation: Activation = Field("tanh", description="tanh, relu or silu")
        initialisation: Initialisation = Field("torch", description="torch (its default) or orthogonal")

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        spec = context.env_spec
        inputs = _flat_inputs(spec.observation_space)
        self._parts = tuple(config.parts)
        for part in config.parts:
            outputs, gain, distribution = _head(part, spec.action_space, context.device)
            generator = torch.Generator().manual_seed(context.seed(part))
            sizes = [inputs, *config.hidden, outputs]
            network = mlp_for(spec.observation_space)(sizes, config.activation, config.initialisation, gain, generator)
            module: nn.Module = network
            if distribution is not None:
                module = Actor(network, distribution)
                _unit_scale(network, distribution)
            self.add_module(part, module)
        if "actor" in self._parts:
            self.policy = ActorPolicy(self.actor)  # type: ignore[arg-type]

    def parts(self) -> tuple[str, ...]:
        """Return the names of the networks."""
        return self._parts


def _flat_inputs(space: gymnasium.Space[Any]) -> int:
    if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1:
        raise ConfigError(f"[model] mlp takes observations in a Box of one dimension, not {space}")
    return space.shape[0]


def _head(part: Part, space: gymnasium.Space[Any], device: torch.device) -> tuple[int, float, Any]:
    """Return outputs, orthogonal gain and distribution of a part."""
    if part == "actor":
        distribution = for_space(space, device)
        return distribution.num_parameters, 0.01, distribution
    if part == "critic":
        return 1, 1.0, None
    if not isinstance(space, gymnasium.spaces.Discrete) or space.start != 0:
        raise ConfigError(f"[model] part 'q_values' needs a discrete action space that starts at 0, not {space}")
    return int(space.n), 1.0, None


@torch.no_grad()
def _unit_scale(network: MLP, distribution: Any) -> None:
    """Let the scales of a normal distribution start near 1."""
    if isinstance(distribution, Normal):
        bias = network.layers[-1].bias
        assert isinstance(bias, Tensor)
        bias[distribution.num_parameters // 2 :] += UNIT_SCALE
