"""Distributions over actions, each a set of functions of one tensor of parameters."""

from __future__ import annotations

import math
from typing import Any, Final

import gymnasium
import numpy as np
import torch
from torch import Tensor

from rlcore.errors import ConfigError
from rlcore.types import Distribution

_HALF_LOG_TWO_PI: Final = 0.5 * math.log(2 * math.pi)
_SMALLEST_SCALE: Final = 1e-4
# softplus of this is 1
UNIT_SCALE: Final = math.log(math.e - 1)


def for_space(space: gymnasium.Space[Any], device: torch.device) -> Distribution:
    """Return the distribution that fits an action space.

    Discrete spaces get a categorical, bounded boxes a tanh-normal, unbounded boxes a normal distribution.

    Raises:
        ConfigError: the space is of another kind.
    """
    if isinstance(space, gymnasium.spaces.Discrete) and space.start == 0:
        return Categorical(int(space.n))
    if isinstance(space, gymnasium.spaces.Box) and len(space.shape) == 1:
        if space.is_bounded("both"):
            low, high = (torch.as_tensor(np.asarray(bound), dtype=torch.float32) for bound in (space.low, space.high))
            return TanhNormal(low.to(device), high.to(device))
        return Normal(space.shape[0])
    raise ConfigError(f"the mlp model has no distribution for the action space {space}")


class Categorical:
    """Actions 0 to n-1; the parameters are log-probabilities, or logits where only the order matters."""

    def __init__(self, num_actions: int) -> None:
        self.num_parameters = num_actions

    def parameters(self, outputs: Tensor) -> Tensor:
        """Return log-probabilities of logits."""
        return torch.log_softmax(outputs, -1)

    def noise(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Draw Gumbel noise `[*shape, n]` (Gumbel-max trick)."""
        exponential = torch.empty(*shape, self.num_parameters, device=generator.device)
        return exponential.exponential_(generator=generator).log_().neg_()

    def sample(self, parameters: Tensor, noise: Tensor) -> Tensor:
        """Return actions `[...]`, int64."""
        return (parameters + noise).argmax(-1)

    def mode(self, parameters: Tensor) -> Tensor:
        """Return the likeliest actions `[...]`, int64."""
        return parameters.argmax(-1)

    def log_prob(self, parameters: Tensor, action: Tensor) -> Tensor:
        """Return `[..., 1]`."""
        return parameters.gather(-1, action.unsqueeze(-1))

    def entropy(self, parameters: Tensor) -> Tensor:
        """Return `[..., 1]`."""
        return (parameters.exp() * parameters).sum(-1, keepdim=True).neg()


class Normal:
    """Independent normal distributions; the parameters are locations and, before softplus, scales."""

    def __init__(self, num_actions: int) -> None:
        self.num_parameters = 2 * num_actions
        self._num_actions = num_actions

    def parameters(self, outputs: Tensor) -> Tensor:
        """Return the outputs as they are."""
        return outputs

    def noise(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Draw standard normal noise `[*shape, action]`."""
        return torch.randn(*shape, self._num_actions, generator=generator, device=generator.device)

    def sample(self, parameters: Tensor, noise: Tensor) -> Tensor:
        """Return actions `[..., action]`."""
        loc, scale = self._loc_scale(parameters)
        return torch.addcmul(loc, scale, noise)

    def mode(self, parameters: Tensor) -> Tensor:
        """Return the locations."""
        return parameters[..., : self._num_actions]

    def log_prob(self, parameters: Tensor, action: Tensor) -> Tensor:
        """Return `[..., 1]`."""
        loc, scale = self._loc_scale(parameters)
        return (-0.5 * ((action - loc) / scale).square() - scale.log() - _HALF_LOG_TWO_PI).sum(-1, keepdim=True)

    def entropy(self, parameters: Tensor) -> Tensor:
        """Return `[..., 1]`."""
        _, scale = self._loc_scale(parameters)
        return (scale.log() + 0.5 + _HALF_LOG_TWO_PI).sum(-1, keepdim=True)

    def _loc_scale(self, parameters: Tensor) -> tuple[Tensor, Tensor]:
        loc, raw = parameters.split(self._num_actions, -1)
        return loc, torch.nn.functional.softplus(raw) + _SMALLEST_SCALE


class TanhNormal(Normal):
    """A normal distribution squashed by tanh and scaled to the bounds of the action space.

    Args:
        low: lower bounds `[action]`.
        high: upper bounds `[action]`.

    The log-probability includes the change of variables (Haarnoja et al., 2018, arXiv 1801.01290, appendix C). The
    entropy has no closed form; the expectation over the squashing is taken by Gauss-Hermite quadrature, so it is
    deterministic.
    """

    _EDGE: Final = 1 - 1e-6
    _NODES: Final = 8

    def __init__(self, low: Tensor, high: Tensor) -> None:
        super().__init__(low.shape[0])
        self._half = (high - low) / 2
        self._middle = (high + low) / 2
        self._unit = bool((low == -1).all() and (high == 1).all())
        self._log_half = self._half.log()
        nodes, weights = np.polynomial.hermite_e.hermegauss(self._NODES)
        self._nodes = torch.as_tensor(nodes, dtype=torch.float32, device=low.device)
        self._weights = torch.as_tensor(weights / weights.sum(), dtype=torch.float32, device=low.device)

    def sample(self, parameters: Tensor, noise: Tensor) -> Tensor:
        """Return actions `[..., action]` inside the bounds."""
        return self._squash(super().sample(parameters, noise))

    def mode(self, parameters: Tensor) -> Tensor:
        """Return the squashed locations."""
        return self._squash(super().mode(parameters))

    def log_prob(self, parameters: Tensor, action: Tensor) -> Tensor:
        """Return `[..., 1]`; actions closer to a bound than 1e-6 of the range count as that close."""
        unit = action if self._unit else (action - self._middle) / self._half
        unit = unit.clamp(-self._EDGE, self._EDGE)
        loc, scale = self._loc_scale(parameters)
        normal = -0.5 * ((unit.atanh() - loc) / scale).square() - scale.log() - _HALF_LOG_TWO_PI
        return (normal - (1 - unit.square()).log() - self._log_half).sum(-1, keepdim=True)

    def entropy(self, parameters: Tensor) -> Tensor:
        """Return `[..., 1]`."""
        loc, scale = self._loc_scale(parameters)
        inner = torch.addcmul(loc.unsqueeze(-1), scale.unsqueeze(-1), self._nodes)
        # log(1 - tanh(x)^2) = 2 (log 2 - x - softplus(-2x)), which does not overflow
        log_slope = 2 * (math.log(2) - inner - torch.nn.functional.softplus(-2 * inner))
        expected = (log_slope * self._weights).sum(-1)
        return (scale.log() + 0.5 + _HALF_LOG_TWO_PI + expected + self._log_half).sum(-1, keepdim=True)

    def _squash(self, inner: Tensor) -> Tensor:
        squashed = inner.tanh()
        return squashed if self._unit else torch.addcmul(self._middle, squashed, self._half)
