"""Generalised state-dependent exploration (gSDE) of a stochastic actor: see `rlcore_plugin_mlp.state_dependent`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from rlcore_plugin_mlp.distributions import TanhNormal
from rlcore_plugin_mlp.networks import Network
from rlcore_plugin_mlp.state_dependent import Exploration, features_of, latent_and_outputs
from torch import Tensor, nn

from rlcore.types import Context
from rlcore_plugin_sac.actors import StochasticActor
from rlcore_plugin_sac.box import ActionBox
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
        every: steps after which a new matrix is drawn, besides that at the beginning of a batch; None for no other.
    """

    _actor: StateDependentActor

    def __init__(
        self, actor: StateDependentActor, box: ActionBox, random_frames: int, context: Context, every: int | None
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
        exploration = self._actor.exploration.standardised(latent, matrix, log_scale)
        action = self._actor.distribution.sample(parameters, exploration)
        if self._begins:
            action = torch.where(first[..., -1:] > 0, first[..., :-1], action)
        return action, action

    def _of_first_frames(self, noise: Tensor) -> Tensor:
        return noise[..., : noise.shape[-1] - self._actor.exploration.log_std.numel()]
