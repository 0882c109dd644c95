"""Several recurrent layers, one above the other, in the place of one."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rlcore_plugin_recurrent.cell import Cell, Initialisation, Step


class Layers(nn.Module):
    """Recurrent layers, each of which takes the hidden states of the one below; called as a `Cell` is.

    Its state has those of the layers side by side, the lowest first: `[row, layers * num_states * size]`.

    Args:
        kind: of each layer.
        count: how many there are.
        inputs: of the lowest one.
        size: of each hidden state.
        initialisation: of the weights; see `Cell`.
        generator: samples the weights.
    """

    def __init__(
        self,
        kind: type[Cell],
        count: int,
        inputs: int,
        size: int,
        initialisation: Initialisation,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        made = [kind(size if number else inputs, size, initialisation, generator) for number in range(count)]
        self.layers = nn.ModuleList(made)

    def initial_state(self, rows: int) -> Tensor:
        """Return the state with which episodes begin: zeros."""
        return torch.cat([cell.initial_state(rows) for cell in self._cells()], -1)

    def forward(self, inputs: Tensor, state: Tensor, first: Tensor) -> Tensor:
        """Return the hidden states of the highest layer, `[time, sequence, size]`."""
        for cell, layer_state in zip(self.layers, self._apart(state), strict=True):
            inputs = cell(inputs, layer_state, first)
        return inputs

    @torch.no_grad()
    def after(self, inputs: Tensor, state: Tensor, first: Tensor) -> Tensor:
        """Return the state after the last step, without gradients."""
        states = []
        for cell, layer_state in zip(self._cells(), self._apart(state), strict=True):
            states.append(cell.after(inputs, layer_state, first))
            if len(states) < len(self.layers):
                inputs = cell(inputs, layer_state, first)
        return torch.cat(states, -1)

    def raw(self) -> Step:
        """Return a step without gradients over the weights as they lie in memory now."""
        steps = [cell.raw() for cell in self._cells()]

        def step(inputs: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
            states = []
            for own_step, layer_state in zip(steps, self._apart(state), strict=True):
                inputs, following = own_step(inputs, layer_state, first)
                states.append(following)
            return inputs, torch.cat(states, -1)

        return step

    def _cells(self) -> list[Cell]:
        return list(self.layers)  # type: ignore[arg-type]

    def _apart(self, state: Tensor) -> tuple[Tensor, ...]:
        return state.chunk(len(self.layers), -1)
