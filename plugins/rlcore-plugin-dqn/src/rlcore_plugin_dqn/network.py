"""Networks from observations to the values of all actions: as numbers, or as distributions of the return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from rlcore_plugin_mlp.encoder import EncodedMLP
from torch import Tensor, nn

from rlcore.types import offers


class TakesNoise(Protocol):
    """A network that takes noise after the observation, as one of noisy layers does.

    Attributes:
        noise_size: how many numbers it takes; 0 for none after all.
    """

    noise_size: int


class DistributionalQNetwork(nn.Module):
    """Numbers that say how the return of each action is distributed, and the means of it.

    Args:
        network: `[..., inputs]` to `[..., num_actions * numbers]`; a noisy one takes its noise as a second argument.
        num_actions: how many actions.

    Attributes:
        noise_size: how many numbers the noise of the network has; 0 for one that takes none.
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
        return self._apart(self.network(observation, *given(noise)))

    def expected(self, numbers: Tensor) -> Tensor:
        """Return the expected values `[..., action]` of `[..., action, number]`."""
        raise NotImplementedError

    def raw(self) -> Callable[..., Tensor]:
        """Return `forward` over views of the weights as they lie in memory now; see `MLP.raw`."""
        forward = self.network.raw()
        return lambda observation, *noise: self.expected(self._apart(forward(observation, *noise)))

    def _apart(self, outputs: Tensor) -> Tensor:
        return outputs.view(*outputs.shape[:-1], self.num_actions, outputs.shape[-1] // self.num_actions)


class CategoricalQNetwork(DistributionalQNetwork):
    """A distribution of the return of each action over `atoms` values (Bellemare et al., 2017, arXiv 1707.06887).

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
    """Quantiles of the return of each action (Dabney et al., 2018, arXiv 1710.10044).

    Args:
        network: `[..., inputs]` to `[..., num_actions * quantiles]`.
        num_actions: how many actions.
        quantiles: how many for each action.

    Attributes:
        fractions: of the return below each quantile, `[quantile]`: the midpoints of equal parts.
    """

    fractions: Tensor

    def __init__(self, network: Any, num_actions: int, quantiles: int) -> None:
        super().__init__(network, num_actions)
        self.register_buffer("fractions", (torch.arange(quantiles) + 0.5) / quantiles)

    def quantiles(self, observation: Tensor, noise: Tensor | None = None) -> Tensor:
        """Return the quantiles `[..., action, quantile]`, in the order of their fractions; nothing sorts them."""
        return self.by_action(observation, noise)

    def expected(self, numbers: Tensor) -> Tensor:
        """Return the expected values `[..., action]` of quantiles `[..., action, quantile]`."""
        return numbers.mean(-1)


def noise_size(network: nn.Module) -> int:
    """Return how many numbers the noise of a network has; 0 for one that takes none, as those of users may be."""
    head = network.head if isinstance(network, EncodedMLP) else network
    return head.noise_size if offers(head, TakesNoise) else 0


def given(noise: Tensor | None) -> tuple[Tensor, ...]:
    """Return what follows the observation in a call of a network: its noise, where there is any."""
    return () if noise is None else (noise,)


def support_of(atoms: int, v_min: float, v_max: float) -> Tensor:
    """Return the values of the atoms, float32 `[atom]`."""
    return torch.linspace(v_min, v_max, atoms)


def of_action(numbers: Tensor, action: Tensor) -> Tensor:
    """Return `[sample, number]` of `[sample, action, number]`: those of int64 actions `[sample]` or `[sample, 1]`."""
    return numbers.gather(1, action.reshape(-1, 1, 1).expand(-1, 1, numbers.shape[-1])).squeeze(1)
