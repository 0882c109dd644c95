"""Distributions over actions, each a set of functions of one tensor of parameters."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import torch
from torch import Tensor

from rlcore.errors import ConfigError
from rlcore_plugin_mlp.terms import (
    HALF_LOG_TWO_PI,
    SMALLEST_SCALE,
    CategoricalTerms,
    TanhNormalTerms,
    log_slope_of_tanh,
    one_node_pays,
)

# softplus of this is 1
UNIT_SCALE: Final = math.log(math.e - 1)
# how near to a bound an action can be told from the bound
EDGE: Final = 1e-6
_NODES: Final = 8


class Categorical:
    """Actions 0 to n-1; the parameters are logits."""

    def __init__(self, num_actions: int) -> None:
        self.num_parameters = num_actions

    def noise(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Sample Gumbel noise `[*shape, n]` (Gumbel-max trick)."""
        exponential = torch.empty(*shape, self.num_parameters, device=generator.device)
        return exponential.exponential_(generator=generator).log_().neg_()

    def sample(self, parameters: Tensor, noise: Tensor) -> Tensor:
        """Return actions `[...]`, int64."""
        return (parameters + noise).argmax(-1)

    def mode(self, parameters: Tensor) -> Tensor:
        """Return the likeliest actions `[...]`, int64."""
        return parameters.argmax(-1)

    def mean(self, parameters: Tensor) -> Tensor:
        """Refuse: the mean of numbered actions is no action.

        Raises:
            ConfigError: always.
        """
        raise ConfigError("discrete actions have no mean; use ExplorationType.DETERMINISTIC, which takes the likeliest")

    def log_prob(self, parameters: Tensor, action: Tensor) -> Tensor:
        """Return `[..., 1]`."""
        return torch.log_softmax(parameters, -1).gather(-1, action.unsqueeze(-1))

    def entropy(self, parameters: Tensor) -> Tensor:
        """Return `[..., 1]`."""
        log_probs = torch.log_softmax(parameters, -1)
        return (log_probs.exp() * log_probs).sum(-1, keepdim=True).neg()

    def log_prob_and_entropy(self, parameters: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Return both, each `[..., 1]`, for the price of one."""
        if one_node_pays(parameters):
            return CategoricalTerms.apply(parameters, action.unsqueeze(-1))  # type: ignore[no-any-return,no-untyped-call]
        return self.log_prob(parameters, action), self.entropy(parameters)


class Normal:
    """Independent normal distributions; the parameters are locations and, before softplus, scales.

    Args:
        num_actions: how many.
        log_scale: whether the parameters are logarithms of the scales instead.
    """

    def __init__(self, num_actions: int, log_scale: bool = False) -> None:
        self.num_parameters = 2 * num_actions
        self._num_actions = num_actions
        self._has_log_scale = log_scale

    def noise(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Sample standard normal noise `[*shape, action]`."""
        return torch.randn(*shape, self._num_actions, generator=generator, device=generator.device)

    def sample(self, parameters: Tensor, noise: Tensor) -> Tensor:
        """Return actions `[..., action]`."""
        loc, scale = self._loc_scale(parameters)
        return torch.addcmul(loc, scale, noise)

    def mode(self, parameters: Tensor) -> Tensor:
        """Return the locations."""
        return parameters[..., : self._num_actions]

    def mean(self, parameters: Tensor) -> Tensor:
        """Return the means `[..., action]`: the locations."""
        return parameters[..., : self._num_actions]

    def log_prob(self, parameters: Tensor, action: Tensor) -> Tensor:
        """Return `[..., 1]`."""
        loc, scale = self._loc_scale(parameters)
        return (-0.5 * ((action - loc) / scale).square() - scale.log() - HALF_LOG_TWO_PI).sum(-1, keepdim=True)

    def entropy(self, parameters: Tensor) -> Tensor:
        """Return `[..., 1]`."""
        _, scale = self._loc_scale(parameters)
        return (scale.log() + 0.5 + HALF_LOG_TWO_PI).sum(-1, keepdim=True)

    def log_prob_and_entropy(self, parameters: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Return both, each `[..., 1]`."""
        return self.log_prob(parameters, action), self.entropy(parameters)

    def _loc_scale(self, parameters: Tensor) -> tuple[Tensor, Tensor]:
        loc, raw = torch.split(parameters, self._num_actions, -1)
        return loc, raw.exp() if self._has_log_scale else torch.nn.functional.softplus(raw) + SMALLEST_SCALE


class TanhNormal(Normal):
    """A normal distribution squashed by tanh and scaled to the bounds of the action space.

    Args:
        low: lower bounds `[action]`.
        high: upper bounds `[action]`.
        log_scale: as in `Normal`.

    The log-probability includes the change of variables (Haarnoja et al., 2018, arXiv 1801.01290, appendix C). The
    entropy has no closed form; the expectation over the squashing is taken by Gauss-Hermite quadrature, so it is
    deterministic.

    Attributes:
        log_half: log of half of each range, `[action]`.
    """

    def __init__(self, low: Tensor, high: Tensor, log_scale: bool = False) -> None:
        super().__init__(low.shape[0], log_scale)
        self._middle = (high + low) / 2
        self._half = _fitting(self._middle, (high - low) / 2, low, high)
        self._is_unit = bool((low == -1).all() and (high == 1).all())
        self.log_half = self._half.log()
        self._one = torch.ones((), device=low.device)
        self._nodes, self._weights = hermite_rule(low.device)

    def sample(self, parameters: Tensor, noise: Tensor) -> Tensor:
        """Return actions `[..., action]` inside the bounds."""
        return self.squash(super().sample(parameters, noise))

    def mode(self, parameters: Tensor) -> Tensor:
        """Return the squashed locations."""
        return self.squash(super().mode(parameters))

    def mean(self, parameters: Tensor) -> Tensor:
        """Return the means `[..., action]` after squashing, by the quadrature of the entropy."""
        loc, scale = self._loc_scale(parameters)
        inner = torch.addcmul(loc.unsqueeze(-1), scale.unsqueeze(-1), self._nodes)
        return self._middle + self._half * (inner.tanh() @ self._weights)

    def log_prob(self, parameters: Tensor, action: Tensor) -> Tensor:
        """Return `[..., 1]`; actions closer to a bound than 1e-6 of the range count as that close."""
        inner, log_slope = self._unsquash(action)
        return super().log_prob(parameters, inner) - log_slope

    def entropy(self, parameters: Tensor) -> Tensor:
        """Return `[..., 1]`."""
        loc, scale = self._loc_scale(parameters)
        inner = torch.addcmul(loc.unsqueeze(-1), scale.unsqueeze(-1), self._nodes)
        expected = log_slope_of_tanh(inner) @ self._weights
        return (scale.log() + 0.5 + HALF_LOG_TWO_PI + expected + self.log_half).sum(-1, keepdim=True)

    def log_prob_and_entropy(self, parameters: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Return both, each `[..., 1]`, for the price of one."""
        if self._has_log_scale or not one_node_pays(parameters):
            return self.log_prob(parameters, action), self.entropy(parameters)
        inner, log_slope = self._unsquash(action)
        log_prob, entropy = TanhNormalTerms.apply(parameters, inner, self._nodes, self._weights)  # type: ignore[no-untyped-call]
        return log_prob - log_slope, entropy + self.log_half.sum()

    def unsquash(self, action: Tensor) -> Tensor:
        """Return the actions before squashing, of the same shape, without gradients."""
        with torch.no_grad():
            return self._unit(action).atanh()

    def _unsquash(self, action: Tensor) -> tuple[Tensor, Tensor]:
        """Return the actions before squashing, and the log of the slope there `[..., 1]`; both without gradients."""
        with torch.no_grad():
            unit = self._unit(action)
            log_slope = torch.addcmul(self._one, unit, unit, value=-1).log_()
            return unit.atanh(), (log_slope + self.log_half).sum(-1, keepdim=True)

    def _unit(self, action: Tensor) -> Tensor:
        """Return actions between -1 and 1, as far from both as can be told."""
        unit = action if self._is_unit else (action - self._middle) / self._half
        return unit.clamp(EDGE - 1, 1 - EDGE)

    def squash(self, inner: Tensor) -> Tensor:
        """Return `[..., action]` inside the bounds, of numbers without bounds."""
        squashed = inner.tanh()
        return squashed if self._is_unit else torch.addcmul(self._middle, squashed, self._half)


def hermite_rule(device: torch.device) -> tuple[Tensor, Tensor]:
    """Return nodes and weights, each `[node]`, of the expectation over a standard normal distribution."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    return (
        torch.as_tensor(nodes, dtype=torch.float32, device=device),
        torch.as_tensor(weights / weights.sum(), dtype=torch.float32, device=device),
    )


def _fitting(middle: Tensor, half: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Return half of the range, shrunk until rounding takes `middle ± half` past no bound."""
    for _ in range(4):
        outside = (middle - half < low) | (middle + half > high)
        half = torch.where(outside, torch.nextafter(half, torch.zeros_like(half)), half)
    return half
