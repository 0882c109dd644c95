"""The model of discrete SAC: a categorical actor, and critics that value every action at once."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import gymnasium
import torch
from pydantic import BaseModel, Field, PositiveInt
from rlcore_plugin_mlp.by_leaf import LeafEncoder
from rlcore_plugin_mlp.distributions import Categorical
from rlcore_plugin_mlp.leaves import PackedEncoder, mask_of
from rlcore_plugin_mlp.model import Actor, MaskedActor
from rlcore_plugin_mlp.network import ACTIVATIONS, Activation, Initialisation
from rlcore_plugin_mlp.networks import Networks
from rlcore_plugin_mlp.numbered import ShiftedCategorical
from torch import Tensor, nn

from rlcore.errors import ConfigError
from rlcore.types import Context, Key
from rlcore_plugin_sac.critics import BatchedLinear, whole
from rlcore_plugin_sac.first_frames import FirstFrames
from rlcore_plugin_sac.norms import Take
from rlcore_plugin_sac.temperature import Temperature

_EVERY_ACTION_ALIKE: Final = 0.01  # orthogonal gain of the last layer of the actor


class ActionCritics(nn.Module):
    """Values of all actions, `[critic, ..., action]`, by N critics in one batched network.

    Args:
        critics: how many.
        sizes: inputs, hidden sizes, number of actions.
        generator: samples the weights.
        activation: between the layers.
        initialisation: of the layers.
        encoder: of observations, shared by the critics; None for none.
    """

    def __init__(
        self,
        critics: int,
        sizes: Sequence[int],
        generator: torch.Generator,
        activation: Activation,
        initialisation: Initialisation,
        encoder: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.critics = critics
        self.encoder = encoder
        self._packed = isinstance(encoder, PackedEncoder)
        self._activation = activation
        layers = [BatchedLinear(critics, *pair) for pair in itertools.pairwise(sizes)]
        for layer in layers:
            layer.initialise(initialisation, 1.0 if layer is layers[-1] else math.sqrt(2), generator)
        self.layers = nn.ModuleList(layers)

    def forward(self, observation: Tensor, take: Take = whole) -> Tensor:
        """Return the values.

        Args:
            observation: `[sample, *shape]`.
            take: the weights; `frozen` takes them without gradients.

        Returns:
            `[critic, sample, action]`.
        """
        hidden = observation if self._packed else observation.float()
        if self.encoder is not None:
            hidden = self.encoder(hidden) if take is whole else self.encoder(hidden).detach()
        for index, layer in enumerate(self.layers):
            hidden = layer(ACTIVATIONS[self._activation](hidden) if index else hidden, take)
        return hidden


class CategoricalPolicy:
    """Uniform actions for the first frames of a run, then samples of the actor; evaluations take its likeliest.

    Args:
        actor: to sample from.
        random_frames: how many frames.
        context: of the model.
    """

    writes: tuple[Key, ...] = ()

    def __init__(self, actor: Actor, random_frames: int, context: Context) -> None:
        self._actor = actor
        self._first = FirstFrames(random_frames, context)
        self.refresh()

    def draw(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        """Sample the noise of a batch, `[time, env, action + 1]`; its last column scales the logits, 0 for uniform."""
        noise = self._actor.distribution.noise((steps, num_envs), generator)
        scale = (~self._first.of_batch(steps, num_envs, noise.device)).float()
        return torch.cat([noise, scale], -1)

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions, int64 `[env]`, and the same again: nothing more is to be described."""
        logits = self._forward(observation) * noise[..., -1:]
        action = self._actor.distribution.sample(logits, noise[..., :-1])
        return action, action

    def describe(self, parameters: Tensor, action: Tensor) -> Mapping[str, Tensor]:
        """Return nothing: the losses need no more than the transition."""
        return {}

    def mode(self, observation: Tensor) -> Tensor:
        """Return the likeliest actions, int64 `[env]`."""
        return self._actor.distribution.mode(self._forward(observation))  # type: ignore[no-any-return]

    def refresh(self) -> None:
        """Follow the weights."""
        self._forward: Callable[[Tensor], Tensor] = self._actor.raw()


class MaskedCategoricalPolicy(CategoricalPolicy):
    """The same over the actions that the observations allow; the first ones are uniform over those."""

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions, int64 `[env]`, and the same again: nothing more is to be described."""
        assert isinstance(self._actor, MaskedActor)
        logits = self._actor.mask(self._forward(observation) * noise[..., -1:], observation)
        action = self._actor.distribution.sample(logits, noise[..., :-1])
        return action, action


class DiscreteActorCriticModel(nn.Module):
    """`actor`, `critics`, `target_critics` and `temperature` for discrete actions.

    Attributes:
        first_action: the number of the first action; the values are those of the actions in their order.
    """

    class Config(BaseModel, extra="forbid"):
        """Shapes of the networks, and how the policy explores."""

        hidden: list[PositiveInt] = Field([256, 256], description="hidden sizes of the actor and of each critic")
        activation: Activation = Field("relu", description="tanh, relu or silu")
        initialisation: Initialisation = Field("torch", description="torch (its default) or orthogonal")
        encoder: str | None = Field(None, description="'module:Name' of a network of your own before the MLPs")
        encoder_kwargs: dict[str, Any] = Field(default_factory=dict, description="its further arguments")
        encoders: dict[str, LeafEncoder] = Field(
            default_factory=dict, description="a network for each leaf of observations that are dicts"
        )
        critics: int = Field(2, ge=1, description="how many critics")
        initial_temperature: float = Field(
            1.0, gt=0, le=1e6, allow_inf_nan=False, description="weight of the entropy in the beginning"
        )
        random_frames: int = Field(1_000, ge=0, description="frames in the beginning whose actions are uniform")

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        actions, self.first_action = _actions(context.env_spec.action_space)
        space = context.env_spec.observation_space
        networks = Networks.of(config, space, context.seed("actor encoder"))
        generator = torch.Generator().manual_seed(context.seed("actor"))
        network = networks.network(actions, _EVERY_ACTION_ALIKE, generator)
        distribution = ShiftedCategorical(actions, self.first_action) if self.first_action else Categorical(actions)
        mask = mask_of(space, context.env_spec.action_space)
        self.actor = Actor(network, distribution) if mask is None else MaskedActor(network, distribution, mask)
        networks = Networks.of(config, space, context.seed("critics encoder"))
        self.critics = ActionCritics(
            config.critics,
            [networks.inputs, *config.hidden, actions],
            torch.Generator().manual_seed(context.seed("critics")),
            config.activation,
            config.initialisation,
            networks.encoder,
        )
        self.target_critics = copy.deepcopy(self.critics).requires_grad_(False)
        self.temperature = Temperature(config.initial_temperature)
        policy = CategoricalPolicy if mask is None else MaskedCategoricalPolicy
        self.policy = policy(self.actor, config.random_frames, context)

    def parts(self) -> tuple[str, ...]:
        """Return the names of the networks, and of the temperature."""
        return ("actor", "critics", "target_critics", "temperature")


def _actions(space: gymnasium.Space[Any]) -> tuple[int, int]:
    """Return how many actions there are, and the number of the first one.

    Raises:
        ConfigError: the space is of another kind, or has no choice.
    """
    if not isinstance(space, gymnasium.spaces.Discrete) or space.n < 2:
        raise ConfigError(
            f"[model] discrete-actor-critic needs a discrete action space of two actions and more, not {space}"
        )
    return int(space.n), int(space.start)
