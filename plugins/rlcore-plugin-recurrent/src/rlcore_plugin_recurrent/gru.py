"""A gated recurrent unit (Cho et al., 2014, arXiv 1406.1078), over sequences with resets and in single steps.

As torch's, whose reset gate multiplies what the hidden state gives, bias included. The loop over time and its gradient
are two operators of their own, for the reasons that `lstm.py` gives.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from rlcore_plugin_recurrent.cell import Cell, Step
from rlcore_plugin_recurrent.resets import kept, reset_steps, shifted


@torch.library.custom_op("rlcore_recurrent::gru", mutates_args=())
def gru_loop(
    projected: Tensor, state: Tensor, first: Tensor, weight: Tensor, bias: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Run over time.

    Args:
        projected: what the inputs give to the gates, with their bias, `[time, sequence, 3 * size]`, in the order reset,
            update, new.
        state: before the first step, `[sequence, size]`.
        first: `[time, sequence, 1]`.
        weight: of the state, `[3 * size, size]`.
        bias: of what the state gives, `[3 * size]`.

    Returns:
        The states `[time, sequence, size]`, the gates as `projected`, and what the states gave to them.
    """
    gates = projected.clone(memory_format=torch.contiguous_format)
    size = weight.shape[1]
    keep = kept(first, gates).unbind(0)
    gate_inputs = torch.empty_like(gates)
    hidden = gates.new_empty(*gates.shape[:2], size)
    opened, recurrence = gates[..., : 2 * size].unbind(0), weight.t()
    resets, updates, news = (gate.unbind(0) for gate in gates.chunk(3, -1))
    to_opened, to_new = gate_inputs[..., : 2 * size].unbind(0), gate_inputs[..., 2 * size :].unbind(0)
    previous, given_rows, hidden_rows = state, gate_inputs.unbind(0), hidden.unbind(0)
    for time, begins in enumerate(reset_steps(first)):
        if begins:
            previous = previous * keep[time]
        torch.addmm(bias, previous, recurrence, out=given_rows[time])
        opened[time].add_(to_opened[time]).sigmoid_()
        news[time].addcmul_(resets[time], to_new[time]).tanh_()
        previous = torch.lerp(news[time], previous, updates[time], out=hidden_rows[time])
    return hidden, gates, gate_inputs


@torch.library.custom_op("rlcore_recurrent::gru_gradient", mutates_args=())
def gru_gradient(
    grad: Tensor, hidden: Tensor, gates: Tensor, given: Tensor, state: Tensor, first: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients for `projected`, `state`, `weight` and `bias`, from that for the states.

    All that does not depend on later steps is computed for all of time at once.
    """
    times, count, width = gates.shape
    size = width // 3
    keep = kept(first, gates)
    previous = shifted(state, hidden, keep)
    resets, updates, news = gates.chunk(3, -1)
    to_new = (1 - updates) * (1 - news * news)
    slopes = gates.new_empty(times, count, 3, size)  # from the states to what the states before them gave
    torch.mul(to_new * given[..., 2 * size :], resets * (1 - resets), out=slopes[:, :, 0])
    torch.mul(previous - news, updates * (1 - updates), out=slopes[:, :, 1])
    torch.mul(to_new, resets, out=slopes[:, :, 2])
    gate_grads, laters = torch.empty_like(slopes), torch.empty_like(hidden)
    grads, by_step, factors = grad.unbind(0), slopes.unbind(0), keep.unbind(0)
    steps, rows, carried = gate_grads.unbind(0), gate_grads.view(times, count, width).unbind(0), updates.unbind(0)
    later, begins, later_rows = torch.zeros_like(state), reset_steps(first), laters.unbind(0)
    for time in range(times - 1, -1, -1):
        whole = torch.add(grads[time], later, out=later_rows[time])
        torch.mul(whole.unsqueeze(1), by_step[time], out=steps[time])
        later = (rows[time] @ weight).addcmul_(whole, carried[time])
        if begins[time]:
            later.mul_(factors[time])
    flat = gate_grads.view(times * count, width)
    of_weight, of_bias = flat.t() @ previous.view(times * count, size), flat.sum(0)
    of_projected = gate_grads.view(times, count, width).clone()
    torch.mul(laters, to_new, out=of_projected[..., 2 * size :])
    return of_projected, later, of_weight, of_bias


@gru_loop.register_fake
def _(projected: Tensor, state: Tensor, first: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    gates = torch.empty_like(projected, memory_format=torch.contiguous_format)
    return projected.new_empty(*projected.shape[:2], weight.shape[1]), gates, torch.empty_like(gates)


@gru_gradient.register_fake
def _(
    grad: Tensor, hidden: Tensor, gates: Tensor, given: Tensor, state: Tensor, first: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    of_weight = weight.new_empty(weight.shape)
    return torch.empty_like(gates), state.new_empty(state.shape), of_weight, weight.new_empty(weight.shape[0])


def _keep(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
    _, state, first, weight, _ = inputs
    hidden, gates, given = output
    ctx.mark_non_differentiable(gates, given)
    ctx.save_for_backward(hidden, gates, given, state, first, weight)


def _gradient(ctx: Any, grad: Tensor, *others: Tensor | None) -> tuple[Tensor | None, ...]:
    projected, state, weight, bias = gru_gradient(grad, *ctx.saved_tensors)
    return projected, state, None, weight, bias


gru_loop.register_autograd(_gradient, setup_context=_keep)


class GRU(Cell):
    """A GRU of one layer, whose weights are named and arranged as those of `torch.nn.GRU`.

    Its state is the hidden one, `[row, size]`.
    """

    num_gates = 3
    num_states = 1

    def forward(self, inputs: Tensor, state: Tensor, first: Tensor) -> Tensor:
        """Return the hidden states `[time, sequence, size]`; see `Cell`."""
        projected = nn.functional.linear(inputs, self.weight_ih_l0, self.bias_ih_l0)
        if torch.compiler.is_compiling():
            return self._unrolled(projected, state, first)
        begun = torch.where(first[0], 0, state)
        hidden: Tensor = gru_loop(projected, begun, first, self.weight_hh_l0, self.bias_hh_l0)[0]
        return hidden

    @torch.no_grad()
    def after(self, inputs: Tensor, state: Tensor, first: Tensor) -> Tensor:
        """Return the state after the last step, without gradients; see `Cell`."""
        return self(inputs, state, first)[-1]  # type: ignore[no-any-return]

    def _unrolled(self, projected: Tensor, state: Tensor, first: Tensor) -> Tensor:
        """Return the same from plain operators: a compiled update differentiates no operator of our own."""
        size, states = self.size, []
        for row, begins in zip(projected.unbind(0), first.unbind(0), strict=True):
            state = torch.where(begins, 0, state)
            gate_inputs = torch.addmm(self.bias_hh_l0, state, self.weight_hh_l0.t())
            resets, updates = (row[:, : 2 * size] + gate_inputs[:, : 2 * size]).sigmoid().chunk(2, -1)
            new = (row[:, 2 * size :] + resets * gate_inputs[:, 2 * size :]).tanh()
            state = new + updates * (state - new)
            states.append(state)
        return torch.stack(states)

    def raw(self) -> Step:
        """Return a step without gradients over the weights as they lie in memory now."""
        size = self.size
        of_inputs, recurrence = self.weight_ih_l0.detach().t(), self.weight_hh_l0.detach().t()
        bias_of_inputs, bias = self.bias_ih_l0.detach(), self.bias_hh_l0.detach()

        def step(inputs: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
            previous = torch.where(first.unsqueeze(-1), 0, state)
            gates = torch.addmm(bias_of_inputs, inputs, of_inputs)
            gate_inputs = torch.addmm(bias, previous, recurrence)
            opened = gates[:, : 2 * size].add_(gate_inputs[:, : 2 * size]).sigmoid_()
            resets, updates = opened.chunk(2, -1)
            new = gates[:, 2 * size :].addcmul_(resets, gate_inputs[:, 2 * size :]).tanh_()
            hidden = torch.lerp(new, previous, updates)
            return hidden, hidden

        return step
