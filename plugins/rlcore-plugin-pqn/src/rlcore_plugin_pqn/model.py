"""The model component: action values that stay in bounds by layer norm, and the policy that explores with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import gymnasium
import torch
from pydantic import Field, PositiveInt
from rlcore_plugin_cnn.images import Layout
from rlcore_plugin_dqn.model import actions_of
from rlcore_plugin_dqn.policy import EpsilonConfig, EpsilonGreedy
from rlcore_plugin_dqn.shifted import Shifted
from rlcore_plugin_mlp.encoder import EncodedMLP
from rlcore_plugin_mlp.network import initialise
from torch import Tensor, nn

from rlcore.envs import FLATTENED, is_image
from rlcore.errors import ConfigError
from rlcore.types import Context
from rlcore_plugin_pqn.convolutions import Convolutions


class ActingOnValues(nn.Module):
    """Base of the models with action values. Their critic is the greatest of these."""

    critic: Greatest

    @property
    def q_values(self) -> nn.Module:
        """What `critic` takes to action values."""
        return self.critic.q_values

    def parts(self) -> tuple[str, ...]:
        """Return the names of the networks, which share their weights."""
        return ("critic", "q_values")


class NormedQNetworkModel(ActingOnValues):
    """Action values `[..., action]` by layers with layer norm, of flat observations or, with `channels`, of images.

    The norm keeps the values of actions that were not taken in bounds, so that neither a target network nor replay is
    needed (Gallici et al., 2024, arXiv 2407.04811, section 3).

    Attributes:
        critic: observations to the greatest action value, `[..., 1]`.
        first_action: the number of the first action.
        schedulable: `epsilon`, which a schedule may move instead of `epsilon_end` and `epsilon_fraction`.

    Raises:
        ConfigError: the actions are not discrete, or the observations are neither flat nor images with `channels`.
    """

    class Config(EpsilonConfig):
        """Shape of the network, and how it explores."""

        hidden: list[PositiveInt] = Field([120, 84], min_length=1, description="hidden sizes")
        channels: list[PositiveInt] = Field([], description="channels of convolutions of 3 x 3 before them, of images")
        layout: Layout = Field("auto", description="where the channels of an image are; auto takes the shorter end")
        normalise_input: bool = Field(False, description="layer norm of the observations too, if they are flat")

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        spec = context.env_spec
        num_actions, self.first_action = actions_of(spec.action_space, "normed-q-network")
        generator = torch.Generator().manual_seed(context.seed("q_values"))
        self.critic = Greatest(_network(config, spec.observation_space, num_actions, generator))
        explorer = EpsilonGreedy(self.q_values, num_actions, config, context.progress)
        self.policy = Shifted(explorer, self.first_action) if self.first_action else explorer
        self.schedulable = self.policy.schedulable


class QNetwork(nn.Module):
    """Linear layers, each but the last with a layer norm and a rectifier behind it.

    Args:
        sizes: of the inputs, and of the hidden layers.
        num_actions: size of the last layer.
        normalise_input: whether a layer norm comes first.
        generator: of the weights, by torch's own initialisation.
    """

    def __init__(
        self, sizes: Sequence[int], num_actions: int, normalise_input: bool, generator: torch.Generator
    ) -> None:
        super().__init__()
        last = nn.Linear(sizes[-1], num_actions)
        self.layers = nn.Sequential(*normed_layers(sizes, normalise_input, generator), last)
        initialise(last, "torch", 1.0, generator)

    def forward(self, observation: Tensor) -> Tensor:
        """Return the action values `[..., action]`."""
        return self.layers(observation.float())  # type: ignore[no-any-return]

    def raw(self) -> Callable[[Tensor], Tensor]:
        """Return the forward pass, which the policy calls."""
        return self.forward


def normed_layers(sizes: Sequence[int], normalise_input: bool, generator: torch.Generator) -> list[nn.Module]:
    """Return linear layers, each with a layer norm and a rectifier behind it; see `QNetwork`."""
    layers: list[nn.Module] = [nn.LayerNorm(sizes[0])] if normalise_input else []
    for inputs, outputs in pairwise(sizes):
        linear = nn.Linear(inputs, outputs)
        initialise(linear, "torch", 1.0, generator)
        layers += [linear, nn.LayerNorm(outputs), nn.ReLU()]
    return layers


class Greatest(nn.Module):
    """The greatest of the action values: what the state is worth to who is greedy from there on.

    Args:
        q_values: with memory or without.
    """

    def __init__(self, q_values: nn.Module) -> None:
        super().__init__()
        self.q_values = q_values

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return the values `[..., 1]` of what `q_values` takes."""
        return self.q_values(*inputs).amax(-1, keepdim=True)  # type: ignore[no-any-return]


def _network(
    config: NormedQNetworkModel.Config, space: gymnasium.Space[Any], num_actions: int, generator: torch.Generator
) -> QNetwork | EncodedMLP:
    """Return the layers, behind convolutions where the config has channels."""
    if not config.channels:
        return QNetwork([inputs_of(space), *config.hidden], num_actions, config.normalise_input, generator)
    if config.normalise_input:
        raise ConfigError("[model] normalise_input: is for flat observations; leave it out, or channels")
    convolutions = convolutions_of(space, config.channels, config.layout, generator)
    layers = QNetwork([convolutions.features, *config.hidden], num_actions, False, generator)
    return EncodedMLP(convolutions, layers, space.shape or ())


def convolutions_of(
    space: gymnasium.Space[Any], channels: Sequence[int], layout: Layout, generator: torch.Generator
) -> Convolutions:
    """Return the convolutions of images.

    Raises:
        ConfigError: the observations are no images.
    """
    if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 3:
        raise ConfigError(f"[model] channels: convolutions take images of three dimensions, not {space}")
    return Convolutions(space, channels, layout, generator)


def inputs_of(space: gymnasium.Space[Any]) -> int:
    """Return how many numbers an observation has.

    Raises:
        ConfigError: it is not flat.
    """
    if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1:
        raise ConfigError(
            f"[model] PQN takes flat observations, not {space}; for images write channels = [16], for "
            "others add [[transform]] use = 'transforms:flatten'",
            remedy={"model": {"channels": [16]}} if is_image(space) else FLATTENED,
        )
    return space.shape[0]
