"""Generalised state-dependent exploration (gSDE): noise that is a function of the observation for several steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor, nn

from rlcore_plugin_mlp.encoder import EncodedMLP
from rlcore_plugin_mlp.model_parts import Actor, ActorPolicy
from rlcore_plugin_mlp.networks import Network

# added to the variance, as in Stable-Baselines3
_LEAST_VARIANCE: Final = 1e-6


class Exploration(nn.Module):
    """The noise `latent @ matrix`, where `matrix` is normal and the same for several steps.

    See Raffin et al. (2021), arXiv 2005.05719. At one step the noise is normal, with a scale that follows from the
    latent: the features that the last layer of the actor sees.

    Args:
        latent: how many features.
        actions: how many actions.
        log_std: the initial logarithm of the standard deviations of the matrix.
    """

    def __init__(self, latent: int, actions: int, log_std: float) -> None:
        super().__init__()
        self.log_std = nn.Parameter(torch.full((latent, actions), log_std))

    def log_scale(self, latent: Tensor) -> Tensor:
        """Return the logarithms of the scales `[..., action]` of the noise at a step."""
        variance = latent.square() @ (2 * self.log_std).exp()
        return 0.5 * (variance + _LEAST_VARIANCE).log()

    def draw(self, steps: int, num_envs: int, every: int | None, generator: torch.Generator) -> Tensor:
        """Sample standard normal matrices `[time, env, latent * action]`, new ones every so many steps of a batch.

        Args:
            steps: of the batch.
            num_envs: how many envs; each has matrices of its own.
            every: steps with the same matrix; None for all of the batch.
            generator: the only source of randomness.
        """
        every = min(every or steps, steps)
        count = -(-steps // every)
        drawn = torch.randn(count, num_envs, self.log_std.numel(), generator=generator, device=generator.device)
        return drawn.expand(steps, -1, -1) if count == 1 else drawn.repeat_interleave(every, 0)[:steps]

    def standardised(self, latent: Tensor, noise: Tensor, log_scale: Tensor) -> Tensor:
        """Return the noise of a step in units of its scale, `[env, action]`.

        Args:
            latent: `[env, latent]`.
            noise: of the step, `[env, latent * action]`.
            log_scale: as `log_scale` returns it.
        """
        matrix = noise.reshape(-1, *self.log_std.shape) * self.log_std.exp()
        return torch.bmm(latent.unsqueeze(1), matrix).squeeze(1) / log_scale.exp()


def latent_and_outputs(network: Network, features: Tensor) -> tuple[Tensor, Tensor]:
    """Return what the last layer of a network sees, and its outputs.

    Args:
        network: of an actor.
        features: as its encoder returns them; the observations where it has none.
    """
    mlp: Any = network.head if isinstance(network, EncodedMLP) else network
    latent, outputs = mlp.with_latent(features)
    return latent, outputs


def features_of(network: Network, observation: Tensor) -> Tensor:
    """Return what the MLP of a network sees."""
    return network.features(observation) if isinstance(network, EncodedMLP) else observation


class StateDependentActor(Actor):
    """An actor of a normal distribution, with the scales of a state-dependent exploration.

    The scales give no gradient to the layers below, as in Stable-Baselines3's PPO and A2C.

    Args:
        network: returns the locations alone.
        distribution: with the parameters location and log standard deviation.
        log_std: the initial value, for every entry of the matrix.
    """

    def __init__(self, network: Network, distribution: Any, log_std: float) -> None:
        super().__init__(network, distribution)
        last = network.layers[-1]
        assert isinstance(last, nn.Linear)
        self.exploration = Exploration(last.in_features, last.out_features, log_std)

    def forward(self, observation: Tensor) -> Tensor:
        """Return the parameters of the distribution."""
        return self.of_features(features_of(self.network, observation))

    def of_features(self, features: Tensor) -> Tensor:
        """Return the parameters of the distribution, from what the encoder made of observations."""
        return self.with_latent(features)[1]

    def with_latent(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return what the last layer sees, and the parameters of the distribution."""
        latent, location = latent_and_outputs(self.network, features)
        return latent, torch.cat([location, self.exploration.log_scale(latent.detach())], -1)

    def raw(self) -> Callable[[Tensor], Tensor]:
        """Return the forward pass without gradients."""
        return torch.no_grad()(self.forward)


class StateDependentPolicy(ActorPolicy):
    """Acts with one matrix of noise for several steps; takes the mode in evaluation.

    Args:
        actor: has the scales.
        every: steps after which a new matrix is drawn, besides that at the beginning of a batch; None for no other.
    """

    _actor: StateDependentActor

    def __init__(self, actor: StateDependentActor, every: int | None) -> None:
        super().__init__(actor)
        self._every = every

    def draw(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        """Sample the matrices of a batch, `[time, env, latent * action]`."""
        return self._actor.exploration.draw(steps, num_envs, self._every, generator)

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return sampled actions, and the parameters of their distribution."""
        actor = self._actor
        latent, parameters = actor.with_latent(features_of(actor.network, observation))
        own = actor.exploration.standardised(latent, noise, parameters.chunk(2, -1)[1])
        return self._distribution.sample(parameters, own), parameters
