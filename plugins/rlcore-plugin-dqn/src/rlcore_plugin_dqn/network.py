"""Networks from observations to the values of all actions: as numbers, or as distributions of the return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from rlcore_plugin_mlp.encoder import EncodedMLP
from torch import Tensor, nn

from rlcore.types import offers


class TakesNoise(Protocol):
    """A network that takes noise after the observation.

    Attributes:
        noise_size: length of its noise; 0 for a network without noisy layers.
    """

    noise_size: int


class DistributionalQNetwork(nn.Module):
    """Base of networks with a distribution of the return of each action; `forward` returns its mean.

    Args:
        network: `[..., inputs]` to `[..., num_actions * numbers]`; a noisy one takes its noise as a second argument.
        num_actions: how many actions.

    Attributes:
        noise_size: length of the noise of the network; 0 for one that takes none.
    """

    def __init__(self, network: Any, num_actions: int) -> None:
        super().__init__()
        self.network = network
        self.num_actions = num_actions
        self.noise_size = noise_size(network)

    def forward(self, observation: Tensor, noise: Tensor | None = None) -> Tensor:
        """Return the expected values `[..., action]`."""
        return self.expected(self.by_action(observation, noise))

    def by_action(self, observation: Tensor, noise: Tensor | None = None) -> Tensor:
        """Return the numbers of each action, `[..., action, number]`."""
        return self._apart(self.network(observation, *noise_arguments(noise)))

    def expected(self, numbers: Tensor) -> Tensor:
        """Return the expected values `[..., action]` of distributions `[..., action, number]`."""
        raise NotImplementedError

    def raw(self) -> Callable[..., Tensor]:
        """Return `forward` over views of the weights in their memory; see `MLP.raw`."""
        forward = self.network.raw()
        return lambda observation, *noise: self.expected(self._apart(forward(observation, *noise)))

    def _apart(self, outputs: Tensor) -> Tensor:
        return outputs.view(*outputs.shape[:-1], self.num_actions, outputs.shape[-1] // self.num_actions)


class CategoricalQNetwork(DistributionalQNetwork):
    """Gives each action a distribution of the return over `atoms` values (Bellemare et al., 2017, arXiv 1707.06887).

    Args:
        network: `[..., inputs]` to `[..., num_actions * atoms]`.
        num_actions: how many actions.
        support: the values of the atoms, `[atom]`, at equal distances.
    """

    support: Tensor

    def __init__(self, network: Any, num_actions: int, support: Tensor) -> None:
        super().__init__(network, num_actions)
        self.register_buffer("support", support)

    def logits(self, observation: Tensor, noise: Tensor | None = None) -> Tensor:
        """Return unnormalised log-probabilities `[..., action, atom]`."""
        return self.by_action(observation, noise)

    def expected(self, numbers: Tensor) -> Tensor:
        """Return the expected values `[..., action]` of logits `[..., action, atom]`."""
        return numbers.softmax(-1) @ self.support


class QuantileQNetwork(DistributionalQNetwork):
    """Gives each action quantiles of the return (Dabney et al., 2018, arXiv 1710.10044).

    Args:
        network: `[..., inputs]` to `[..., num_actions * quantiles]`.
        num_actions: how many actions.
        quantiles: how many for each action.

    Attributes:
        fractions: probability of a return below each quantile, `[quantile]`: the midpoints of equal parts.
    """

    fractions: Tensor

    def __init__(self, network: Any, num_actions: int, quantiles: int) -> None:
        super().__init__(network, num_actions)
        self.register_buffer("fractions", (torch.arange(quantiles) + 0.5) / quantiles)

    def quantiles(self, observation: Tensor, noise: Tensor | None = None) -> Tensor:
        """Return the quantiles `[..., action, quantile]` in the order of their fractions; they are not sorted."""
        return self.by_action(observation, noise)

    def expected(self, numbers: Tensor) -> Tensor:
        """Return the expected values `[..., action]` of quantiles `[..., action, quantile]`."""
        return numbers.mean(-1)


def noise_size(network: nn.Module) -> int:
    """Return the length of the noise of a network; 0 for one that takes none, such as one of a user."""
    head = network.head if isinstance(network, EncodedMLP) else network
    return head.noise_size if offers(head, TakesNoise) else 0


def noise_arguments(noise: Tensor | None) -> tuple[Tensor, ...]:
    """Return the noise as further arguments of a network: one, or none without noise."""
    return () if noise is None else (noise,)


def support_of(atoms: int, v_min: float, v_max: float) -> Tensor:
    """Return the values of the atoms, float32 `[atom]`."""
    return torch.linspace(v_min, v_max, atoms)


def of_action(numbers: Tensor, action: Tensor) -> Tensor:
    """Return `[sample, number]` of `[sample, action, number]`: those of int64 actions `[sample]` or `[sample, 1]`."""
    return numbers.gather(1, action.reshape(-1, 1, 1).expand(-1, 1, numbers.shape[-1])).squeeze(1)
