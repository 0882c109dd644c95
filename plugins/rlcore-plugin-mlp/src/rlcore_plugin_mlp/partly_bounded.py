"""The distribution of boxes in which some actions have a bound on one side only, or none."""

from __future__ import annotations

import torch
from torch import Tensor

from rlcore_plugin_mlp.distributions import EDGE, Normal, TanhNormal, hermite_rule
from rlcore_plugin_mlp.terms import HALF_LOG_TWO_PI, log_slope_of_tanh


class PartlyBoundedNormal(Normal):
    """A normal distribution, each action of which is squashed by the bounds that it has.

    With both bounds by tanh, as in `TanhNormal`; with a lower one `low + softplus(x)`, with an upper one
    `high - softplus(-x)`; with none not at all. Samples keep to the bounds, rounding included.

    Args:
        low: lower bounds `[action]`, minus infinity where there is none.
        high: upper bounds `[action]`, infinity where there is none.
        log_scale: as in `Normal`.

    The entropy is an expectation over the squashing, taken by the quadrature of `TanhNormal`.
    """

    def __init__(self, low: Tensor, high: Tensor, log_scale: bool = False) -> None:
        super().__init__(low.shape[0], log_scale)
        below, above = low.isfinite(), high.isfinite()
        self._both, self._one = below & above, below ^ above
        zero, one = torch.zeros_like(low), torch.ones_like(low)
        self._sign = torch.where(below, one, -one)
        self._bound = torch.where(below, low, torch.where(above, high, zero))
        self._tanh = TanhNormal(torch.where(self._both, low, -one), torch.where(self._both, high, one))
        self._nodes, self._weights = hermite_rule(low.device)

    def sample(self, parameters: Tensor, noise: Tensor) -> Tensor:
        """Return actions `[..., action]` inside the bounds."""
        return self._squash(super().sample(parameters, noise))

    def mode(self, parameters: Tensor) -> Tensor:
        """Return the squashed locations."""
        return self._squash(super().mode(parameters))

    def mean(self, parameters: Tensor) -> Tensor:
        """Return the means `[..., action]` after squashing, by the quadrature of the entropy."""
        points = self._points(parameters).movedim(-1, 0)
        mean: Tensor = torch.tensordot(self._weights, self._squash(points), dims=1)
        return mean

    def log_prob(self, parameters: Tensor, action: Tensor) -> Tensor:
        """Return `[..., 1]`; actions closer to a bound than 1e-6 count as that close (of half the range, with two)."""
        with torch.no_grad():
            inner = self._unsquash(action)
            log_slope = self._log_slope(inner)
        return super().log_prob(parameters, inner) - log_slope.sum(-1, keepdim=True)

    def entropy(self, parameters: Tensor) -> Tensor:
        """Return `[..., 1]`."""
        _, scale = self._loc_scale(parameters)
        slopes = self._log_slope(self._points(parameters).movedim(-1, 0))
        expected = torch.tensordot(self._weights, slopes, dims=1)
        entropies: Tensor = scale.log() + 0.5 + HALF_LOG_TWO_PI + expected
        return entropies.sum(-1, keepdim=True)

    def _points(self, parameters: Tensor) -> Tensor:
        """Return the points of the quadrature `[..., action, node]`, before squashing."""
        loc, scale = self._loc_scale(parameters)
        return torch.addcmul(loc.unsqueeze(-1), scale.unsqueeze(-1), self._nodes)

    def _squash(self, inner: Tensor) -> Tensor:
        soft = self._bound + self._sign * torch.nn.functional.softplus(self._sign * inner)
        return torch.where(self._both, self._tanh.squash(inner), torch.where(self._one, soft, inner))

    def _unsquash(self, action: Tensor) -> Tensor:
        """Return the actions before squashing; softplus(x) = y gives x = y + log(1 - exp(-y))."""
        distance = (self._sign * (action - self._bound)).clamp(min=EDGE)
        soft = self._sign * (distance + (-torch.expm1(-distance)).log())
        return torch.where(self._both, self._tanh.unsquash(action), torch.where(self._one, soft, action))

    def _log_slope(self, inner: Tensor) -> Tensor:
        """Return the log of the slope at `inner`, of the same shape; the slope of softplus is the sigmoid."""
        soft = torch.nn.functional.logsigmoid(self._sign * inner)
        of_tanh = log_slope_of_tanh(inner) + self._tanh.log_half
        return torch.where(self._both, of_tanh, torch.where(self._one, soft, torch.zeros_like(inner)))
