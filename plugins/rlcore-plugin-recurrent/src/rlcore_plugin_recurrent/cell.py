"""What an LSTM and a GRU have in common: weights, the form of their state, and how they are called."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

Initialisation = Literal["torch", "orthogonal"]
Step = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


class Cell(nn.Module):
    """A recurrent layer whose state begins again, as zeros, where an episode does.

    Called `cell(inputs, state, first)`: inputs `[time, sequence, inputs]`, the state before the first step
    `[sequence, num_states * size]`, `first` `[time, sequence, 1]`; returns the hidden states `[time, sequence, size]`.
    Gradients go back to the beginning of the episode, or of the sequence and to its state.

    `raw()` returns a function of one step for acting: inputs `[row, inputs]`, state `[row, num_states * size]`, `first`
    `[row]`, to the hidden state `[row, size]` and the next state.

    Args:
        inputs: how many there are.
        size: of the hidden state.
        initialisation: `torch`, its own; or `orthogonal`, with zero biases, as in CleanRL.
        generator: samples the weights.

    Attributes:
        size: the same.
        num_gates: how many there are.
        num_states: tensors of `size` in a state.
    """

    num_gates: ClassVar[int]
    num_states: ClassVar[int]

    def __init__(self, inputs: int, size: int, initialisation: Initialisation, generator: torch.Generator) -> None:
        super().__init__()
        self.size = size
        rows = self.num_gates * size
        self.weight_ih_l0 = nn.Parameter(torch.empty(rows, inputs))
        self.weight_hh_l0 = nn.Parameter(torch.empty(rows, size))
        self.bias_ih_l0 = nn.Parameter(torch.empty(rows))
        self.bias_hh_l0 = nn.Parameter(torch.empty(rows))
        bound = 1 / math.sqrt(size)
        with torch.no_grad():
            for parameter in self.parameters():
                if initialisation == "torch":
                    parameter.uniform_(-bound, bound, generator=generator)
                elif parameter.ndim == 1:
                    parameter.zero_()
                else:
                    nn.init.orthogonal_(parameter, generator=generator)

    def initial_state(self, rows: int) -> Tensor:
        """Return the state with which episodes begin, `[row, num_states * size]`: zeros."""
        return self.weight_hh_l0.detach().new_zeros(rows, self.num_states * self.size)

    def after(self, inputs: Tensor, state: Tensor, first: Tensor) -> Tensor:
        """Return the state after the last step, `[sequence, num_states * size]`, without gradients.

        The arguments are those of a call; for steps that only bring a state up to date.
        """
        raise NotImplementedError

    def raw(self) -> Step:
        """Return a step without gradients over the weights as they lie in memory now."""
        raise NotImplementedError
