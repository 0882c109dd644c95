"""The policy prior: a normal distribution over actions, squashed to [-1, 1], for each latent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import torch
from torch import Tensor, nn

from rlcore_plugin_tdmpc2.layers import Network

_HALF_LOG_TAU: Final = 0.5 * math.log(2 * math.pi)
_LEAST: Final = 1e-6  # added to the slope of tanh, whose logarithm is taken


class Sampled(NamedTuple):
    """Actions of the prior.

    Attributes:
        action: in [-1, 1], `[..., action]`.
        normal_log_prob: of the normal distribution, before it is squashed, `[..., 1]`.
        log_prob: of the action, `[..., 1]`.
    """

    action: Tensor
    normal_log_prob: Tensor
    log_prob: Tensor


class Prior(nn.Module):
    """Means and log standard deviations of actions, by a network.

    Args:
        sizes: of a latent, and of the hidden layers.
        actions: how many.
        log_std: bounds of the log standard deviations, between which tanh squashes them.
        generator: samples the weights.
    """

    def __init__(
        self, sizes: Sequence[int], actions: int, log_std: tuple[float, float], generator: torch.Generator
    ) -> None:
        super().__init__()
        self.network = Network([*sizes, 2 * actions], generator)
        self._low, self._range = log_std[0], log_std[1] - log_std[0]

    def forward(self, latent: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and log standard deviations, `[..., action]` each."""
        mean, outputs = self.network(latent).chunk(2, -1)
        return mean, self._low + 0.5 * self._range * (outputs.tanh() + 1)

    def action(self, latent: Tensor, noise: Tensor) -> Tensor:
        """Return the actions that standard normal noise `[..., action]` picks, in [-1, 1]."""
        mean, log_std = self(latent)
        return torch.addcmul(mean, noise, log_std.exp()).tanh()

    def sample(self, latent: Tensor, noise: Tensor) -> Sampled:
        """Return the same actions, with their log-probabilities."""
        mean, log_std = self(latent)
        action = torch.addcmul(mean, noise, log_std.exp()).tanh()
        normal = (-0.5 * noise.square() - log_std - _HALF_LOG_TAU).sum(-1, keepdim=True)
        slope = ((1 - action.square()).relu() + _LEAST).log().sum(-1, keepdim=True)
        return Sampled(action, normal, normal - slope)
