"""Critics that give distributions of the return."""

from __future__ import annotations

import copy
from typing import Self

import torch
from rlcore_plugin_sac.box import ActionBox
from rlcore_plugin_sac.critics import whole
from rlcore_plugin_sac.norms import Take
from torch import Tensor, nn

from rlcore_plugin_flashsac.batch import Statistics
from rlcore_plugin_flashsac.blocks import BatchedNetwork, Shape
from rlcore_plugin_flashsac.observation_scale import ObservationNorm, normalised


class CategoricalCritics(nn.Module):
    """Distributions of the scaled return over atoms, by N critics in one batched network.

    Args:
        critics: how many.
        inputs: size of an observation.
        atoms: how many values.
        largest: the largest value; the least is minus it.
        box: of the actions.
        shape: of each network.
        generator: samples the weights.
        norm: of the observations, where the model has one.

    Attributes:
        critics: as given.
        support: the values, `[atom]`.
    """

    support: Tensor

    def __init__(
        self,
        critics: int,
        inputs: int,
        atoms: int,
        largest: float,
        box: ActionBox,
        shape: Shape,
        generator: torch.Generator,
        norm: ObservationNorm | None = None,
    ) -> None:
        super().__init__()
        self.critics = critics
        self._norms = () if norm is None else (norm,)  # not as a module: it is the model's, and a reset leaves it
        self.network = BatchedNetwork(critics, inputs + box.size, atoms, shape, generator)
        self._box = box
        self.register_buffer("support", torch.linspace(-largest, largest, atoms))

    def forward(self, observation: Tensor, action: Tensor) -> Tensor:
        """Return the mean returns `[critic, ..., 1]` of actions `[..., action]` in the env's units."""
        batch_shape = action.shape[:-1]
        unit = self._box.to_unit(action).reshape(-1, action.shape[-1])
        values = self.values(observation.reshape(-1, observation.shape[-1]), unit)
        return values.reshape(self.critics, *batch_shape, 1)

    def log_probs(
        self, observation: Tensor, unit: Tensor, take: Take = whole, statistics: Statistics = Statistics.RUNNING
    ) -> Tensor:
        """Return the logarithms of the probabilities of the atoms, `[critic, sample, atom]`.

        Args:
            observation: `[sample, inputs]`.
            unit: actions scaled to [-1, 1], `[sample, action]`.
            take: the weights; `frozen` takes them without gradients.
            statistics: by which batch norms normalise.
        """
        inputs = torch.cat([normalised(observation.float(), self._norms), unit], -1)
        return self.network(inputs.expand(self.critics, -1, -1), take, statistics).log_softmax(-1)  # type: ignore[no-any-return]

    def target(self) -> Self:
        """Return a copy without gradients, which normalises as these critics do."""
        return copy.deepcopy(self, {id(norm): norm for norm in self._norms}).requires_grad_(False)

    def values(self, observation: Tensor, unit: Tensor, take: Take = whole) -> Tensor:
        """Return the mean returns `[critic, sample, 1]` by the running statistics; arguments as for `log_probs`."""
        probs = self.log_probs(observation, unit, take).exp()
        return (probs * self.support).sum(-1, keepdim=True)
