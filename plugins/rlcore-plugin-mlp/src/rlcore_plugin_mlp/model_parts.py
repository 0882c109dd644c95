"""The actor of the model, and the policy that samples from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from rlcore_plugin_mlp.encoder import EncodedMLP
from rlcore_plugin_mlp.networks import Network


class Actor(nn.Module):
    """Observations `[..., *shape]` to parameters `[..., num_parameters]` of a distribution over actions."""

    def __init__(self, network: Network, distribution: Any) -> None:
        super().__init__()
        self.network = network
        self.distribution = distribution

    def forward(self, observation: Tensor) -> Tensor:
        """Return the parameters of the distribution."""
        return self.network(observation)  # type: ignore[no-any-return]

    def of_features(self, features: Tensor) -> Tensor:
        """Return the parameters of the distribution, from what the encoder made of observations."""
        assert isinstance(self.network, EncodedMLP)
        return self.network.of_features(features)

    def raw(self) -> Callable[[Tensor], Tensor]:
        """Return the forward pass without gradients over the weights as they lie in memory now; see `MLP.raw`."""
        return self.network.raw()


class ActorPolicy:
    """Samples from the actor during collection; takes the mode in evaluation."""

    writes = ("sample_log_prob",)

    def __init__(self, actor: Actor) -> None:
        self._actor = actor
        self._distribution = actor.distribution
        self._forward = actor.raw()

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
        self._forward = self._actor.raw()
