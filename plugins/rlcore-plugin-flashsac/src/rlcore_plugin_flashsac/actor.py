"""The actor: a network of blocks that gives means and log standard deviations."""

from __future__ import annotations

from collections.abc import Callable

import torch
from rlcore_plugin_mlp.distributions import TanhNormal
from rlcore_plugin_sac.actors import SquashedSample, squashed_sample
from rlcore_plugin_sac.critics import whole
from torch import Tensor, nn

from rlcore_plugin_flashsac.batch import Statistics
from rlcore_plugin_flashsac.blocks import BatchedNetwork
from rlcore_plugin_flashsac.observation_scale import ObservationNorm, normalised


class BlocksActor(nn.Module):
    """Observations to the means and log standard deviations `[..., 2 * action]` of a squashed normal distribution.

    The logarithms are squashed between their bounds by tanh, as FlashSAC, SimbaV2 and BRO have it.

    Args:
        network: of one copy.
        distribution: of the actions.
        log_std: the least and the largest logarithm.
        norm: of the observations, where the model has one.
    """

    def __init__(
        self,
        network: BatchedNetwork,
        distribution: TanhNormal,
        log_std: tuple[float, float],
        norm: ObservationNorm | None = None,
    ) -> None:
        super().__init__()
        self.network = network
        self.distribution = distribution
        self._low, self._high = log_std
        self._norms = () if norm is None else (norm,)  # not as a module: it is the model's, and a reset leaves it

    def forward(self, observation: Tensor) -> Tensor:
        """Return the parameters of the distribution, by the running statistics."""
        rows = observation.reshape(-1, observation.shape[-1])
        outputs = self.parameters_of(rows)
        return outputs.reshape(*observation.shape[:-1], outputs.shape[-1])

    def parameters_of(self, observation: Tensor, statistics: Statistics = Statistics.RUNNING) -> Tensor:
        """Return the parameters `[sample, 2 * action]` of observations `[sample, inputs]`.

        Args:
            observation: of the samples.
            statistics: by which batch norms normalise.
        """
        inputs = normalised(observation.float(), self._norms)
        outputs: Tensor = self.network(inputs.unsqueeze(0), whole, statistics).squeeze(0)
        mean, raw = outputs.chunk(2, -1)
        return torch.cat([mean, self._low + 0.5 * (self._high - self._low) * (1 + raw.tanh())], -1)

    def raw(self) -> Callable[[Tensor], Tensor]:
        """Return `forward` without gradients."""
        return torch.no_grad()(self.parameters_of)

    def rsample(self, observation: Tensor, noise: Tensor, statistics: Statistics) -> tuple[Tensor, Tensor]:
        """Return sampled actions scaled to [-1, 1], and their log-densities there; both with gradients.

        Args:
            observation: `[sample, inputs]`.
            noise: standard normal, `[sample, action]`.
            statistics: by which batch norms normalise.

        Returns:
            `[sample, action]` and `[sample, 1]`.
        """
        parameters = self.parameters_of(observation, statistics)
        return sampled(parameters, noise)


def sampled(parameters: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Return actions scaled to [-1, 1] and their log-densities, of parameters `[sample, 2 * action]` and noise."""
    if parameters.requires_grad and not torch.compiler.is_compiling():
        return SquashedSample.apply(parameters, noise)  # type: ignore[no-any-return,no-untyped-call]
    return squashed_sample(parameters, noise)
