"""Networks from observations to the values of all actions: as numbers, or as distributions over a fixed support."""

from __future__ import annotations

from collections.abc import Callable

import torch
from rlcore_plugin_mlp.networks import Network
from torch import Tensor, nn


class CategoricalQNetwork(nn.Module):
    """A distribution of the return of each action over `atoms` values (Bellemare et al., 2017, arXiv 1707.06887).

    Args:
        network: `[..., inputs]` to `[..., num_actions * atoms]`.
        num_actions: how many actions.
        support: the values of the atoms, `[atom]`, at equal distances.
    """

    support: Tensor

    def __init__(self, network: Network, num_actions: int, support: Tensor) -> None:
        super().__init__()
        self.network = network
        self.num_actions = num_actions
        self.register_buffer("support", support)

    def forward(self, observation: Tensor) -> Tensor:
        """Return the expected values `[..., action]`."""
        return self.expected(self.logits(observation))

    def logits(self, observation: Tensor) -> Tensor:
        """Return unnormalised log-probabilities `[..., action, atom]`."""
        return self._by_action(self.network(observation))

    def expected(self, logits: Tensor) -> Tensor:
        """Return the expected values `[..., action]` of `[..., action, atom]`."""
        return logits.softmax(-1) @ self.support

    def raw(self) -> Callable[[Tensor], Tensor]:
        """Return `forward` over views of the weights as they lie in memory now; see `MLP.raw`."""
        forward = self.network.raw()
        return lambda observation: self.expected(self._by_action(forward(observation)))

    def _by_action(self, outputs: Tensor) -> Tensor:
        return outputs.view(*outputs.shape[:-1], self.num_actions, -1)


def support_of(atoms: int, v_min: float, v_max: float) -> Tensor:
    """Return the values of the atoms, float32 `[atom]`."""
    return torch.linspace(v_min, v_max, atoms)
