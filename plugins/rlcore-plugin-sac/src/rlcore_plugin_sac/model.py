"""The model component: an actor, critics in one network, their targets, and the policy that explores."""

from __future__ import annotations

import copy
from typing import Any, Final, Literal, Self

import torch
from pydantic import BaseModel, Field, PositiveInt, model_validator
from rlcore_plugin_mlp.by_leaf import LeafEncoder
from rlcore_plugin_mlp.network import Activation, Initialisation
from rlcore_plugin_mlp.networks import Networks
from torch import nn

from rlcore.types import Context
from rlcore_plugin_sac.actors import DeterministicActor, StochasticActor
from rlcore_plugin_sac.box import ActionBox, squashed_normal
from rlcore_plugin_sac.critics import Critics
from rlcore_plugin_sac.norms import Norm
from rlcore_plugin_sac.policy import NoisyPolicy, SamplingPolicy, UniformFirst
from rlcore_plugin_sac.state_dependent import StateDependentActor, StateDependentPolicy
from rlcore_plugin_sac.temperature import Temperature

_OF_STOCHASTIC: Final = ("log_std_min", "log_std_max", "initial_temperature", "sde", "sde_every", "sde_log_std")
_OF_SDE: Final = ("sde_every", "sde_log_std")


class ActorCriticModel(nn.Module):
    """`actor`, `critics` and `target_critics`; with a stochastic actor `temperature`, else `target_actor`.

    `critics` is one network, observations and actions `[..., action]` to values `[critic, ..., quantile]`.

    Attributes:
        box: of the actions.
        dropout: fraction of the critics' hidden values that a loss leaves out.
        schedulable: `noise`, with a deterministic actor.
    """

    class Config(BaseModel, extra="forbid"):
        """Shapes of the networks, and how the policy explores."""

        actor: Literal["stochastic", "deterministic"] = Field(
            "stochastic", description="stochastic, a squashed normal distribution, or deterministic"
        )
        hidden: list[PositiveInt] = Field([256, 256], description="hidden sizes of the actor")
        critic_hidden: list[PositiveInt] | None = Field(
            None, description="hidden sizes of each critic; default: those of the actor"
        )
        activation: Activation = Field("relu", description="tanh, relu or silu")
        initialisation: Initialisation = Field("torch", description="torch (its default) or orthogonal")
        encoder: str | None = Field(None, description="'module:Name' of a network of your own before the MLPs")
        encoder_kwargs: dict[str, Any] = Field(default_factory=dict, description="its further arguments")
        encoders: dict[str, LeafEncoder] = Field(
            default_factory=dict, description="a network for each leaf of observations that are dicts"
        )
        critics: int = Field(2, ge=1, description="how many critics")
        quantiles: int = Field(
            1, ge=1, description="of the return, that each critic gives; more than one are for the loss tqc"
        )
        norm: Norm = Field("none", description="before each activation of the critics: none or layer")
        dropout: float = Field(0.0, ge=0, lt=1, description="fraction of the critics' hidden values left out, updates")
        log_std_min: float = Field(-20.0, allow_inf_nan=False, description="least log standard deviation of the actor")
        log_std_max: float = Field(2.0, allow_inf_nan=False, description="largest log standard deviation of the actor")
        initial_temperature: float = Field(
            1.0, gt=0, le=1e6, allow_inf_nan=False, description="weight of the entropy in the beginning"
        )
        sde: bool = Field(False, description="explore by noise that is a function of the observation (gSDE)")
        sde_every: int = Field(
            0, ge=0, description="steps after which another one is drawn; 0: at the beginning of a batch alone"
        )
        sde_log_std: float = Field(
            -3.0,
            allow_inf_nan=False,
            description="log standard deviation of its matrix in the beginning",
        )
        noise: float = Field(
            0.1, ge=0, le=1, description="standard deviation of a deterministic actor's noise, in halves of the range"
        )
        random_frames: int = Field(1_000, ge=0, description="frames in the beginning whose actions are uniform")

        @model_validator(mode="after")
        def _is_a_range(self) -> Self:
            if self.log_std_min >= self.log_std_max:
                raise ValueError(f"log_std_min = {self.log_std_min} must be less than log_std_max = {self.log_std_max}")
            return self

        @model_validator(mode="after")
        def _fits_the_actor(self) -> Self:
            others = ("noise",) if self.actor == "stochastic" else _OF_STOCHASTIC
            changed = self.model_dump(exclude_defaults=True)
            if without := [key for key in changed if key in others]:
                raise ValueError(f"{' and '.join(without)} count for nothing with a {self.actor} actor; leave them out")
            if not self.sde and (without := [key for key in _OF_SDE if key in changed]):
                raise ValueError(f"{' and '.join(without)} count for nothing without sde = true; leave them out")
            return self

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        spec = context.env_spec
        distribution = squashed_normal(spec.action_space, context.device)
        self.box = ActionBox(distribution)
        self.dropout = config.dropout
        self.critics = _critics(config, self.box, context)
        self.target_critics = copy.deepcopy(self.critics).requires_grad_(False)
        generator = torch.Generator().manual_seed(context.seed("actor"))
        networks = Networks.of(config, spec.observation_space, context.seed("actor encoder"))
        if config.actor == "stochastic":
            limits = (config.log_std_min, config.log_std_max)
            self.actor: nn.Module
            self.policy: UniformFirst
            if config.sde:
                network = networks.network(self.box.size, 0.01, generator)
                actor = StateDependentActor(network, distribution, limits, config.sde_log_std)
                every = config.sde_every or None
                self.policy = StateDependentPolicy(actor, self.box, config.random_frames, context, every)
                self.actor = actor
            else:
                network = networks.network(distribution.num_parameters, 0.01, generator)
                self.actor = StochasticActor(network, distribution, limits)
                self.policy = SamplingPolicy(self.actor, self.box, config.random_frames, context)
            self.temperature = Temperature(config.initial_temperature)  # after the actor: optimizers go by this order
            return
        self.actor = DeterministicActor(networks.network(self.box.size, 0.01, generator), self.box)
        self.target_actor = copy.deepcopy(self.actor).requires_grad_(False)
        noisy = NoisyPolicy(self.actor, self.box, config.random_frames, context, config.noise)
        self.policy, self.schedulable = noisy, noisy.schedulable

    def parts(self) -> tuple[str, ...]:
        """Return the names of the networks, and of the temperature."""
        last = "temperature" if isinstance(self.actor, StochasticActor) else "target_actor"
        return ("actor", "critics", "target_critics", last)


def _critics(config: ActorCriticModel.Config, box: ActionBox, context: Context) -> Critics:
    networks = Networks.of(config, context.env_spec.observation_space, context.seed("critics encoder"))
    return critics_of(config, networks.inputs, box, context, networks.encoder)


def critics_of(
    config: ActorCriticModel.Config, inputs: int, box: ActionBox, context: Context, encoder: nn.Module | None = None
) -> Critics:
    """Return the critics of a config.

    Args:
        config: of the model.
        inputs: size of what they see besides the action.
        box: of the actions.
        context: of the model.
        encoder: of observations; None where they see what is encoded already.
    """
    generator = torch.Generator().manual_seed(context.seed("critics"))
    hidden = config.critic_hidden or config.hidden
    return Critics(
        config.critics,
        inputs,
        hidden,
        box,
        generator,
        config.activation,
        config.initialisation,
        config.norm,
        encoder,
        config.quantiles,
    )
