"""The actors: of a squashed normal distribution, as SAC has one, and deterministic, as TD3 and DDPG have one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from rlcore_plugin_mlp.distributions import TanhNormal
from rlcore_plugin_mlp.networks import Network
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from rlcore_plugin_sac.box import ActionBox

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


class StochasticActor(nn.Module):
    """Observations to the means and log standard deviations `[..., 2 * action]` of a squashed normal distribution.

    The logarithms are outputs of the network, clamped as by Haarnoja et al. (2018, arXiv 1801.01290; their code has -20
    and 2).

    Args:
        network: observations `[..., *shape]` to `[..., 2 * action]`.
        distribution: of the actions.
        log_std: the least and the largest logarithm.
    """

    def __init__(self, network: Network, distribution: TanhNormal, log_std: tuple[float, float]) -> None:
        super().__init__()
        self.network = network
        self.distribution = distribution
        size, device = distribution.num_parameters // 2, distribution.log_half.device
        self._low, self._high = (
            torch.cat([torch.full((size,), open_end, device=device), torch.full((size,), bound, device=device)])
            for open_end, bound in zip((-torch.inf, torch.inf), log_std, strict=True)
        )

    def forward(self, observation: Tensor) -> Tensor:
        """Return the parameters of the distribution."""
        return self.network(observation).clamp(self._low, self._high)  # type: ignore[no-any-return]

    def raw(self) -> Callable[[Tensor], Tensor]:
        """Return `forward` without gradients, over the weights as they lie in memory now; see `MLP.raw`."""
        forward, low, high = self.network.raw(), self._low, self._high
        return lambda observation: forward(observation).clamp_(low, high)

    def rsample(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return sampled actions scaled to [-1, 1], and their log-densities there; both with gradients.

        Args:
            observation: `[sample, *shape]`.
            noise: standard normal, `[sample, action]`.

        Returns:
            `[sample, action]` and `[sample, 1]`.
        """
        parameters = self(observation)
        if parameters.requires_grad and not torch.compiler.is_compiling():
            return SquashedSample.apply(parameters, noise)  # type: ignore[no-any-return,no-untyped-call]
        return squashed_sample(parameters, noise)


def squashed_sample(parameters: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Return `tanh(mean + std * noise)` and its log-density `[..., 1]` (arXiv 1801.01290, appendix C).

    The log-density is taken from the numbers before squashing, so that it is finite however near to a bound an action
    comes: log(1 - tanh(x)^2) = 2 (log 2 - x - softplus(-2x)).

    Args:
        parameters: means and log standard deviations, `[..., 2 * action]`.
        noise: standard normal, `[..., action]`; with dimensions in front it gives several samples of each.
    """
    mean, log_std = parameters.chunk(2, -1)
    inner = torch.addcmul(mean, log_std.exp(), noise)
    unit = inner.tanh()
    log_slope = 2 * (math.log(2) - inner - nn.functional.softplus(-2 * inner))
    each = noise.square() * -0.5 - log_std - log_slope - _HALF_LOG_TWO_PI
    return unit, each.sum(-1, keepdim=True)


class SquashedSample(torch.autograd.Function):
    """`squashed_sample` as one node of the graph, with gradients worked out by hand: a third of the time."""

    @staticmethod
    def forward(ctx: Any, parameters: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Compute both."""
        unit, log_prob = squashed_sample(parameters, noise)
        ctx.save_for_backward(parameters, noise, unit)
        return unit, log_prob

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """Use d tanh(x) / dx = 1 - tanh(x)^2 and d log_prob / dx = 2 tanh(x)."""
        of_unit, of_log_prob = gradients
        parameters, noise, unit = ctx.saved_tensors
        log_std = parameters.chunk(2, -1)[1]
        slope = torch.addcmul(torch.ones((), device=unit.device), unit, unit, value=-1)
        of_inner = torch.addcmul(of_unit * slope, unit, of_log_prob, value=2)
        of_log_std = (of_inner * noise).mul_(log_std.exp()).sub_(of_log_prob)
        return torch.cat([of_inner, of_log_std], -1), None


class DeterministicActor(nn.Module):
    """Observations to actions, squashed by tanh and scaled to the bounds.

    Args:
        network: observations `[..., *shape]` to `[..., action]`.
        box: of the actions.
    """

    def __init__(self, network: Network, box: ActionBox) -> None:
        super().__init__()
        self.network = network
        self._box = box

    def forward(self, observation: Tensor) -> Tensor:
        """Return actions `[..., action]` in the env's units."""
        return self._box.from_unit(self.unit(observation))

    def unit(self, observation: Tensor) -> Tensor:
        """Return actions `[..., action]` scaled to [-1, 1]."""
        return torch.tanh(self.network(observation))

    def raw(self) -> Callable[[Tensor], Tensor]:
        """Return `unit` without gradients, over the weights as they lie in memory now; see `MLP.raw`."""
        forward = self.network.raw()
        return lambda observation: forward(observation).tanh_()
