"""A long short-term memory (Hochreiter and Schmidhuber, 1997), over sequences with resets and in single steps.

The loop over time and its gradient are two operators of their own: torch's LSTM knows no resets, a call for each step
costs several times as much. A compiled update unrolls the loop instead.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from rlcore_plugin_recurrent.cell import Cell, Step
from rlcore_plugin_recurrent.resets import kept, reset_steps, shifted


@torch.library.custom_op("rlcore_recurrent::lstm", mutates_args=())
def lstm_loop(projected: Tensor, state: Tensor, first: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Run over time.

    Args:
        projected: what the inputs give to the gates, with both biases, `[time, sequence, 4 * size]`, in the order
            input, forget, cell, output.
        state: hidden and cell state before the first step, `[sequence, 2 * size]`.
        first: `[time, sequence, 1]`.
        weight: of the hidden state, `[4 * size, size]`.

    Returns:
        The hidden states `[time, sequence, size]`, the gates as `projected`, and the cell states as the hidden ones.
    """
    gates = projected.clone(memory_format=torch.contiguous_format)
    times, count, width = gates.shape
    size = width // 4
    keep = kept(first, gates).unbind(0)
    hidden = gates.new_empty(times, count, size)
    cells = gates.new_empty(times, count, size)
    opened = gates[..., : 2 * size].unbind(0)
    inputs, forgets, news, outputs = (gate.unbind(0) for gate in gates.chunk(4, -1))
    recurrence = weight.t()
    previous, cell_before = state.chunk(2, -1)
    rows = zip(gates.unbind(0), hidden.unbind(0), cells.unbind(0), strict=True)
    for time, ((gate, hidden_row, cell_row), resets) in enumerate(zip(rows, reset_steps(first), strict=True)):
        if resets:
            previous, cell_before = previous * keep[time], cell_before * keep[time]
        gate.addmm_(previous, recurrence)
        opened[time].sigmoid_()
        news[time].tanh_()
        outputs[time].sigmoid_()
        torch.mul(inputs[time], news[time], out=cell_row)
        cell_row.addcmul_(forgets[time], cell_before)
        torch.tanh(cell_row, out=hidden_row)
        hidden_row.mul_(outputs[time])
        previous, cell_before = hidden_row, cell_row
    return hidden, gates, cells


@torch.library.custom_op("rlcore_recurrent::lstm_gradient", mutates_args=())
def lstm_gradient(
    grad: Tensor, hidden: Tensor, gates: Tensor, cells: Tensor, state: Tensor, first: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients for `projected`, `state` and `weight`, from that for the hidden states.

    All that does not depend on later steps is computed for all of time at once.
    """
    times, count, width = gates.shape
    size = width // 4
    keep = kept(first, gates)
    initial, initial_cell = state.chunk(2, -1)
    by_gate = gates.view(times, count, 4, size)
    opened, forgets, news, outputs = by_gate.unbind(2)
    squashed = torch.tanh(cells)
    to_cell = (1 - squashed * squashed).mul_(outputs)
    slopes = by_gate * (1 - by_gate)  # of the sigmoids; that of tanh takes the place of its own
    slopes[:, :, 0] *= news
    slopes[:, :, 1] *= shifted(initial_cell, cells, keep)
    torch.mul(1 - news * news, opened, out=slopes[:, :, 2])
    slopes[:, :, 3] *= squashed
    gate_grads = torch.empty_like(by_gate)
    grads, rows, factors = grad.unbind(0), gate_grads.view(times, count, width).unbind(0), keep.unbind(0)
    of_cell, of_output = gate_grads[:, :, :3].unbind(0), gate_grads[:, :, 3].unbind(0)
    cell_slopes, output_slopes = slopes[:, :, :3].unbind(0), slopes[:, :, 3].unbind(0)
    to_cells, forgotten = to_cell.unbind(0), forgets.unbind(0)
    later, resets = grads[-1], reset_steps(first)
    cell = torch.zeros_like(initial_cell)
    for time in range(times - 1, -1, -1):
        cell.addcmul_(later, to_cells[time])
        torch.mul(cell.unsqueeze(1), cell_slopes[time], out=of_cell[time])
        torch.mul(later, output_slopes[time], out=of_output[time])
        cell.mul_(forgotten[time])
        if resets[time]:
            cell.mul_(factors[time])
            later = (rows[time] @ weight).mul_(factors[time])
            if time:
                later += grads[time - 1]
        else:
            later = torch.addmm(grads[time - 1], rows[time], weight) if time else rows[time] @ weight
    flat = gate_grads.view(times * count, width)
    of_weight = flat.t() @ shifted(initial, hidden, keep).view(times * count, size)
    return gate_grads.view(times, count, width), torch.cat([later, cell], -1), of_weight


@lstm_loop.register_fake
def _(projected: Tensor, state: Tensor, first: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    row = projected.new_empty(*projected.shape[:2], weight.shape[1])
    return row, torch.empty_like(projected, memory_format=torch.contiguous_format), torch.empty_like(row)


@lstm_gradient.register_fake
def _(
    grad: Tensor, hidden: Tensor, gates: Tensor, cells: Tensor, state: Tensor, first: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(gates), state.new_empty(state.shape), weight.new_empty(weight.shape)


def _keep(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
    _, state, first, weight = inputs
    hidden, gates, cells = output
    ctx.mark_non_differentiable(gates, cells)
    ctx.save_for_backward(hidden, gates, cells, state, first, weight)


def _gradient(ctx: Any, grad: Tensor, *others: Tensor | None) -> tuple[Tensor | None, ...]:
    projected, state, weight = lstm_gradient(grad, *ctx.saved_tensors)
    return projected, state, None, weight


lstm_loop.register_autograd(_gradient, setup_context=_keep)


class LSTM(Cell):
    """An LSTM of one layer, whose weights are named and arranged as those of `torch.nn.LSTM`.

    Its state is `[row, 2 * size]`: the hidden state, then the cell state.
    """

    num_gates = 4
    num_states = 2

    def forward(self, inputs: Tensor, state: Tensor, first: Tensor) -> Tensor:
        """Return the hidden states `[time, sequence, size]`; see `Cell`."""
        return self._run(inputs, state, first)[0]

    @torch.no_grad()
    def after(self, inputs: Tensor, state: Tensor, first: Tensor) -> Tensor:
        """Return the state after the last step, without gradients; see `Cell`."""
        hidden, cells = self._run(inputs, state, first)
        return torch.cat([hidden[-1], cells[-1]], -1)

    def _run(self, inputs: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        """Return hidden states and cell states of all steps."""
        bias = self.bias_ih_l0 + self.bias_hh_l0
        projected = nn.functional.linear(inputs, self.weight_ih_l0, bias)
        if torch.compiler.is_compiling():
            return self._unrolled(projected, state, first)
        hidden, _, cells = lstm_loop(projected, torch.where(first[0], 0, state), first, self.weight_hh_l0)
        return hidden, cells

    def _unrolled(self, projected: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        """Return the same from plain operators: a compiled update differentiates no operator of our own."""
        hidden, cell = state.chunk(2, -1)
        hiddens, cells = [], []
        for row, begins in zip(projected.unbind(0), first.unbind(0), strict=True):
            hidden, cell = torch.where(begins, 0, hidden), torch.where(begins, 0, cell)
            opened, forgets, news, outputs = torch.addmm(row, hidden, self.weight_hh_l0.t()).chunk(4, -1)
            cell = forgets.sigmoid() * cell + opened.sigmoid() * news.tanh()
            hidden = outputs.sigmoid() * cell.tanh()
            hiddens.append(hidden)
            cells.append(cell)
        return torch.stack(hiddens), torch.stack(cells)

    def raw(self) -> Step:
        """Return a step without gradients over the weights as they lie in memory now."""
        of_inputs, recurrence = self.weight_ih_l0.detach().t(), self.weight_hh_l0.detach().t()
        bias = self.bias_ih_l0.detach() + self.bias_hh_l0.detach()

        def step(inputs: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
            previous, cell_before = torch.where(first.unsqueeze(-1), 0, state).chunk(2, -1)
            gates = torch.addmm(bias, inputs, of_inputs).addmm_(previous, recurrence)
            opened, forgets, news, outputs = gates.chunk(4, -1)
            cell = (opened.sigmoid_() * news.tanh_()).addcmul_(forgets.sigmoid_(), cell_before)
            hidden = outputs.sigmoid_().mul_(torch.tanh(cell))
            return hidden, torch.cat([hidden, cell], -1)

        return step
