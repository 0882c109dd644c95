"""The model of CrossQ: an actor and wide critics with batch renormalisation, without targets."""

from __future__ import annotations

import torch
from pydantic import BaseModel, Field, PositiveInt
from rlcore_plugin_mlp.network import Activation, Initialisation
from torch import Tensor, nn

from rlcore.errors import ConfigError
from rlcore.types import Context
from rlcore_plugin_sac.actors import SquashedSample, StochasticActor, squashed_sample
from rlcore_plugin_sac.box import ActionBox, squashed_normal, vector_size
from rlcore_plugin_sac.normalised import NormalisedCritics, NormalisedMLP
from rlcore_plugin_sac.policy import SamplingPolicy
from rlcore_plugin_sac.temperature import Temperature


class NormalisedActor(StochasticActor):
    """A `StochasticActor` of a `NormalisedMLP`."""

    network: NormalisedMLP

    def rsample(self, observation: Tensor, noise: Tensor, update: bool = False) -> tuple[Tensor, Tensor]:
        """Return what `StochasticActor.rsample` does; `update` normalises by this batch and moves the statistics."""
        parameters = self.network(observation, update).clamp(self._low, self._high)
        if parameters.requires_grad and not torch.compiler.is_compiling():
            return SquashedSample.apply(parameters, noise)  # type: ignore[no-any-return,no-untyped-call]
        return squashed_sample(parameters, noise)


class CrossQModel(nn.Module):
    """`actor`, `critics` and `temperature`; actor and critics are normalised before every linear map.

    Running statistics are buffers: evaluations and the policy use them, updates of the loss `crossq` move them.

    Attributes:
        box: of the actions.
    """

    class Config(BaseModel, extra="forbid"):
        """Shapes of the networks, their normalisation, and how the policy explores."""

        hidden: list[PositiveInt] = Field([256, 256], description="hidden sizes of the actor")
        critic_hidden: list[PositiveInt] = Field([512, 512], description="hidden sizes of each critic")
        activation: Activation = Field("relu", description="tanh, relu or silu")
        initialisation: Initialisation = Field("torch", description="torch (its default) or orthogonal")
        critics: int = Field(2, ge=1, description="how many critics")
        norm_momentum: float = Field(0.01, gt=0, le=1, description="how far an update moves the running statistics")
        norm_warmup: int = Field(100_000, ge=0, description="updates of plain batch normalisation")
        log_std_min: float = Field(-20.0, allow_inf_nan=False, description="least log standard deviation of the actor")
        log_std_max: float = Field(2.0, allow_inf_nan=False, description="largest log standard deviation of the actor")
        initial_temperature: float = Field(
            1.0, gt=0, le=1e6, allow_inf_nan=False, description="weight of the entropy in the beginning"
        )
        random_frames: int = Field(1_000, ge=0, description="frames in the beginning whose actions are uniform")

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        if config.log_std_min >= config.log_std_max:
            raise ConfigError(
                f"[model] log_std_min = {config.log_std_min} must be less than log_std_max = {config.log_std_max}"
            )
        space = context.env_spec.action_space
        inputs = vector_size(context.env_spec.observation_space, "crossq")
        distribution = squashed_normal(space, context.device)
        self.box = ActionBox(distribution)
        how = (config.activation, config.initialisation)
        normalisation = (config.norm_momentum, config.norm_warmup)
        generator = torch.Generator().manual_seed(context.seed("actor"))
        sizes = [inputs, *config.hidden, distribution.num_parameters]
        network = NormalisedMLP(sizes, *how, generator, *normalisation)
        self.actor = NormalisedActor(network, distribution, (config.log_std_min, config.log_std_max))
        generator = torch.Generator().manual_seed(context.seed("critics"))
        self.critics = NormalisedCritics(
            config.critics, inputs, config.critic_hidden, self.box, generator, *how, *normalisation
        )
        self.temperature = Temperature(config.initial_temperature)
        self.policy = SamplingPolicy(self.actor, self.box, config.random_frames, context)

    def parts(self) -> tuple[str, ...]:
        """Return the names of the networks, and of the temperature."""
        return ("actor", "critics", "temperature")
