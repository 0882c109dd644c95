"""Generalised state-dependent exploration (gSDE) of a stochastic actor: see `rlcore_plugin_mlp.state_dependent`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import torch
from pydantic import Field, model_validator
from rlcore_plugin_mlp.distributions import TanhNormal
from rlcore_plugin_mlp.networks import Network, Networks
from rlcore_plugin_mlp.state_dependent import SDE, Exploration, features_of, latent_and_outputs
from torch import Tensor, nn

from rlcore.types import Context
from rlcore_plugin_sac.actors import StochasticActor
from rlcore_plugin_sac.box import ActionBox
from rlcore_plugin_sac.model import ActorCriticModel
from rlcore_plugin_sac.policy import SamplingPolicy


class StateDependentActor(StochasticActor):
    """A stochastic actor with the scales of a state-dependent exploration; they train the layers below too.

    Args:
        network: observations `[..., *shape]` to the means `[..., action]`.
        distribution: of the actions.
        limits: the least and the largest logarithm of a scale.
        log_std: the initial logarithm of the deviations of the matrix.
    """

    def __init__(self, network: Network, distribution: TanhNormal, limits: tuple[float, float], log_std: float) -> None:
        super().__init__(network, distribution, limits)
        last = network.layers[-1]
        assert isinstance(last, nn.Linear)
        self.exploration = Exploration(last.in_features, last.out_features, log_std)

    def forward(self, observation: Tensor) -> Tensor:
        """Return the parameters of the distribution."""
        return self.with_latent(observation)[1]

    def with_latent(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """Return what the last layer sees, and the parameters of the distribution."""
        latent, mean = latent_and_outputs(self.network, features_of(self.network, observation))
        return latent, torch.cat([mean, self.exploration.log_scale(latent)], -1).clamp(self._low, self._high)

    def raw(self) -> Callable[[Tensor], Tensor]:
        """Return `forward` without gradients."""
        return torch.no_grad()(self.forward)


class StateDependentPolicy(SamplingPolicy):
    """Acts with one matrix of noise for several steps, after the uniform actions of the first frames.

    The noise of a step is that of `SamplingPolicy`, of which only the uniform actions count, and behind it the matrix.

    Args:
        actor: has the scales.
        box: of the actions.
        random_frames: how many frames.
        context: of the model.
        every: steps after which a new matrix is drawn, besides that of each batch; or `batch`.
    """

    _actor: StateDependentActor

    def __init__(
        self, actor: StateDependentActor, box: ActionBox, random_frames: int, context: Context, every: int | str
    ) -> None:
        self._every = every
        super().__init__(actor, box, random_frames, context)

    def draw(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        """Sample the noise of a batch, `[time, env, ...]`."""
        matrices = self._actor.exploration.draw(steps, num_envs, self._every, generator)
        return torch.cat([super().draw(steps, num_envs, generator), matrices], -1)

    def foretold(self, noise: Tensor) -> tuple[Tensor, list[bool]] | None:
        """Return the uniform actions `[time, env, action]`, and in which steps all are; None once they are over."""
        return super().foretold(self._of_first_frames(noise))

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions `[env, action]`, and the same again."""
        latent, parameters = self._actor.with_latent(observation)
        first = self._of_first_frames(noise)
        matrix, log_scale = noise[..., first.shape[-1] :], parameters.chunk(2, -1)[1]
        own = self._actor.exploration.standardised(latent, matrix, log_scale)
        action = self._actor.distribution.sample(parameters, own)
        if self._begins:
            action = torch.where(first[..., -1:] > 0, first[..., :-1], action)
        return action, action

    def _of_first_frames(self, noise: Tensor) -> Tensor:
        return noise[..., : noise.shape[-1] - self._actor.exploration.log_std.numel()]


class ExploringActorCriticModel(ActorCriticModel):
    """An actor, critics and targets; a stochastic actor may explore by gSDE."""

    class Config(ActorCriticModel.Config):
        """Shapes of the networks, and how the policy explores."""

        sde: SDE = Field(
            None,
            description="explore by noise that is a function of the observation (gSDE): steps after which another "
            "function is drawn, besides that of each batch, or 'batch'; default: no",
        )
        sde_log_std: float = Field(
            -3.0, allow_inf_nan=False, description="log standard deviation of its matrix in the beginning"
        )

        @model_validator(mode="after")
        def _fits_sde(self) -> Self:
            if self.sde is not None and self.actor != "stochastic":
                raise ValueError(f"sde counts for nothing with a {self.actor} actor; leave it out")
            if self.sde is None and self.sde_log_std != -3.0:
                raise ValueError("sde_log_std counts for nothing without sde; leave it out")
            return self

    def _explorer(
        self,
        config: Any,
        networks: Networks,
        distribution: TanhNormal,
        generator: torch.Generator,
        context: Context,
    ) -> tuple[StochasticActor, SamplingPolicy]:
        if config.sde is None:
            return super()._explorer(config, networks, distribution, generator, context)
        network = networks.network(self.box.size, 0.01, generator)
        actor = StateDependentActor(network, distribution, (config.log_std_min, config.log_std_max), config.sde_log_std)
        return actor, StateDependentPolicy(actor, self.box, config.random_frames, context, config.sde)
