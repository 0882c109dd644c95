"""The recurrent layers beside torch's cells, which know no resets: values, gradients and single steps."""

from __future__ import annotations

import pytest
import torch
from rlcore_plugin_recurrent.gru import GRU
from rlcore_plugin_recurrent.layers import Layers
from rlcore_plugin_recurrent.lstm import LSTM
from rlcore_plugin_testing import make_run

from rlcore import Factory

KINDS = pytest.mark.parametrize("kind", [LSTM, GRU])


def generator():
    return torch.Generator().manual_seed(0)


def problem(kind, dtype=torch.float64, times=5, count=3, inputs=4, size=6):
    """Return a layer, and inputs, states and flags with beginnings at the first step, inside, and nowhere."""
    cell = kind(inputs, size, "torch", generator()).to(dtype)
    draw = generator()
    seen = torch.randn(times, count, inputs, dtype=dtype, generator=draw, requires_grad=True)
    state = torch.randn(count, kind.num_states * size, dtype=dtype, generator=draw, requires_grad=True)
    first = torch.zeros(times, count, 1, dtype=torch.bool)
    first[0, 0] = first[2, 1] = first[-1, 1] = True
    return cell, seen, state, first


def by_hand(cell, seen, state, first):
    """Return the hidden states by torch's own cell, step by step, and the last state."""
    size = cell.size
    own = (torch.nn.LSTMCell if isinstance(cell, LSTM) else torch.nn.GRUCell)(seen.shape[-1], size, dtype=seen.dtype)
    weights = {name.removesuffix("_l0"): value for name, value in cell.named_parameters()}
    hidden = []
    for row, begins in zip(seen, first, strict=True):
        state = torch.where(begins, 0, state)
        arguments = (row, state.split(size, -1)) if isinstance(cell, LSTM) else (row, state)
        following = torch.func.functional_call(own, weights, arguments)
        state = torch.cat(following, -1) if isinstance(cell, LSTM) else following
        hidden.append(state[:, :size])
    return torch.stack(hidden), state


@KINDS
def test_values_and_gradients_are_those_of_torchs_cells(kind):
    cell, seen, state, first = problem(kind)
    weighing = torch.randn(5, 3, 6, dtype=torch.float64, generator=generator())
    leaves = [*cell.parameters(), seen, state]
    expected, _ = by_hand(cell, seen, state, first)
    found = cell(seen, state, first)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    for one, other in zip(
        torch.autograd.grad((found * weighing).sum(), leaves),
        torch.autograd.grad((expected * weighing).sum(), leaves),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-11)


@KINDS
def test_the_state_after_the_last_step_is_that_of_torchs_cells(kind):
    cell, seen, state, first = problem(kind)
    _, expected = by_hand(cell, seen, state, first)
    found = cell.after(seen, state, first)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    assert not found.requires_grad


@KINDS
def test_what_a_compiled_update_unrolls_is_the_same(kind):
    cell, seen, state, first = problem(kind)
    bias = cell.bias_ih_l0 + (cell.bias_hh_l0 if kind is LSTM else 0)
    found = cell._unrolled(torch.nn.functional.linear(seen, cell.weight_ih_l0, bias), state, first)
    hidden = found[0] if kind is LSTM else found
    torch.testing.assert_close(hidden, by_hand(cell, seen, state, first)[0], rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_a_compiled_update_trains_as_an_eager_one_does():
    """With a GRU and parts of their own in `test_memories.py`."""
    sections = {
        "env": {"use": "testing:toy", "actions": "discrete"},
        "model": {"use": "recurrent:lstm", "size": 6, "encoder_hidden": [5]},
        "estimator": {"use": "ppo:gae"},
        "loss": {"use": "ppo"},
        "buffer": {"use": "rollout-sequences", "minibatch_size": 8, "sequence_length": 4},
    }
    weights = []
    for compiled in (False, True):
        learner = {"use": "gradient", "compile": compiled}
        trainer = make_run(sections={**sections, "learner": learner}).trainer
        trainer.train()
        weights.append([parameter.detach() for parameter in trainer.model.parameters()])
    for eager, compiled in zip(*weights, strict=True):
        torch.testing.assert_close(compiled, eager, rtol=1e-4, atol=1e-5)


@KINDS
def test_gradients_are_those_of_differences(kind):
    cell, seen, state, first = problem(kind, times=3, count=2, inputs=2, size=2)
    names, weights = zip(*cell.named_parameters(), strict=True)

    def run(seen, state, *weights):
        return torch.func.functional_call(cell, dict(zip(names, weights, strict=True)), (seen, state, first))

    assert torch.autograd.gradcheck(run, (seen, state, *weights))


@KINDS
def test_a_step_without_gradients_is_a_step_of_the_sequence(kind):
    cell, seen, state, first = problem(kind, torch.float32)
    expected, last = by_hand(cell, seen, state, first)
    step, carried = cell.raw(), state.detach()
    with torch.inference_mode():
        for row, begins, hidden in zip(seen, first, expected, strict=True):
            before = carried.clone()
            found, following = step(row, carried, begins.squeeze(-1))
            assert torch.equal(carried, before), "the state that is handed in stays"
            torch.testing.assert_close(found, hidden.detach())
            carried = following
    torch.testing.assert_close(carried, last.detach())


@KINDS
def test_weights_are_those_of_torchs_layer(kind):
    cell, seen, state, _ = problem(kind, torch.float32)
    layer = getattr(torch.nn, kind.__name__)(4, 6)
    layer.load_state_dict(cell.state_dict())
    states = [part.detach().unsqueeze(0).contiguous() for part in state.split(6, -1)]
    expected, _ = layer(seen, tuple(states) if kind is LSTM else states[0])
    torch.testing.assert_close(cell(seen, state, torch.zeros(5, 3, 1, dtype=torch.bool)), expected)


@KINDS
def test_what_stands_before_a_beginning_does_not_matter_even_where_it_is_not_finite(kind):
    cell, seen, state, first = problem(kind, torch.float32)
    first[0] = True
    spoilt = torch.full_like(state, float("nan"))
    torch.testing.assert_close(cell(seen, spoilt, first), cell(seen, state, first))


@KINDS
def test_operators_keep_the_rules_of_torch(kind):
    cell, seen, state, first = problem(kind)
    inputs = torch.nn.functional.linear(seen, cell.weight_ih_l0).detach().requires_grad_()
    arguments = [inputs, state, first, cell.weight_hh_l0, cell.bias_hh_l0]
    operator = getattr(torch.ops.rlcore_recurrent, kind.__name__.lower()).default
    torch.library.opcheck(operator, tuple(arguments[: 4 if kind is LSTM else 5]))


@KINDS
def test_orthogonal_weights_have_zero_biases(kind):
    cell = kind(6, 6, "orthogonal", generator())
    torch.testing.assert_close(cell.weight_hh_l0.T @ cell.weight_hh_l0, torch.eye(6))
    assert not cell.bias_ih_l0.any()
    assert not cell.bias_hh_l0.any()


@KINDS
def test_layers_above_each_other_are_those_of_torch(kind):
    torchs = (torch.nn.LSTM if kind is LSTM else torch.nn.GRU)(4, 6, num_layers=2, dtype=torch.float64)
    layers = Layers(kind, 2, 4, 6, "torch", generator()).double()
    for number, layer in enumerate(layers.layers):
        names = [name.removesuffix("_l0") for name, _ in layer.named_parameters()]
        layer.load_state_dict({f"{name}_l0": getattr(torchs, f"{name}_l{number}") for name in names})
    seen = torch.randn(5, 3, 4, dtype=torch.float64, generator=generator())
    state, first = layers.initial_state(3), torch.zeros(5, 3, 1, dtype=torch.bool)
    expected, ends = torchs(seen)
    torch.testing.assert_close(layers(seen, state, first), expected)
    # torch has the layers of each tensor of a state side by side, here are the tensors of each layer
    last = torch.cat([part[number] for number in range(2) for part in (ends if kind is LSTM else (ends,))], -1)
    torch.testing.assert_close(layers.after(seen, state, first), last)
    step = layers.raw()
    for row, hidden in zip(seen, expected, strict=True):
        found, state = step(row, state, torch.zeros(3, dtype=torch.bool))
        torch.testing.assert_close(found, hidden)
    torch.testing.assert_close(state, last)


@pytest.mark.parametrize("reset_mode", ["same_step", "next_step"])
def test_a_rollout_carries_the_state_from_step_to_step(reset_mode):
    make = Factory(total_frames=96, seed=3)
    env = make.env("testing:toy", reset_mode=reset_mode, episode_lengths=[7, 4])
    model = make.model("recurrent:gru", size=4, layers=2)
    batch = env.rollout(12, model.policy, break_when_any_done=False)
    done, first = batch["next", "done"], batch["first"]
    delay = 1 if reset_mode == "same_step" else 2
    assert first[:, 0].all()
    assert torch.equal(first[:, delay:], done[:, :-delay])
    assert torch.equal(batch["next", "policy_state"][:, :-1], batch["policy_state"][:, 1:])
    states = batch["policy_state"][:, 0]
    found = model.actor(*(batch[key].transpose(0, 1) for key in ("observation",)), states, first.transpose(0, 1))
    described = model.actor.distribution.log_prob(found, batch["action"].transpose(0, 1)).transpose(0, 1)
    torch.testing.assert_close(described, batch["sample_log_prob"])
