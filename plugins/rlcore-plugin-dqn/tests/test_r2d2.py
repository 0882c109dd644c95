"""The loss of R2D2: its targets and gradients against a loop over sequences and steps, in double precision."""

import math

import numpy as np
import pytest
import torch
from rlcore_plugin_dqn.r2d2 import rescaled, returns_of
from rlcore_plugin_testing import check_resumed, make_run, make_trainer

from rlcore.errors import ConfigError
from rlcore.types import MASK

from .sections import AROUND, SEQUENCES

GAMMA = SEQUENCES["loss"]["gamma"]
LENGTH, BURN_IN = SEQUENCES["buffer"]["sequence_length"], SEQUENCES["buffer"]["burn_in"]


def h(x):
    return math.copysign(math.sqrt(abs(x) + 1) - 1, x) + 1e-3 * x


def inverse(y):
    """By bisection, so that it shares nothing with the closed form."""
    low, high = -1e7, 1e7
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if h(middle) < y else (low, middle)
    return (low + high) / 2


def weights_of(network):
    return {name: value.detach().double().numpy() for name, value in network.named_parameters()}


def step(weights, observation, state, first):
    """Return values and next state of one step of one sequence."""
    before = np.zeros_like(state) if first else state
    seen = weights["body.inputs.weight"] @ observation + weights["body.inputs.bias"]
    following = np.tanh(seen + weights["body.recurrence.weight"] @ before)
    return weights["head.weight"] @ following + weights["head.bias"], following


def rows_of(network, samples, sequence):
    """Return the values of each row of a sequence, one step after another."""
    weights, state, found = weights_of(network), samples["policy_state"][sequence].double().numpy(), []
    for row in range(len(samples["observation"])):
        seen = samples["observation"][row, sequence].double().numpy()
        values, state = step(weights, seen, state, bool(samples["first"][row, sequence]))
        found.append(values)
    return found


def errors_of(model, samples, double, rescale):
    """Return weight, value and target of each trained step, by (row, sequence)."""
    found = {}
    change, back = (h, inverse) if rescale else (float, float)
    for sequence in range(samples["observation"].shape[1]):
        online, target = rows_of(model.q_values, samples, sequence), rows_of(model.target_q_values, samples, sequence)
        for row in range(len(online)):
            if not samples[MASK][row, sequence]:
                continue
            ahead = int(samples["steps_to_next_obs"][row, sequence])
            bootstrap = row + ahead
            best = int(np.argmax((online if double else target)[bootstrap]))
            going = not bool(samples["next", "terminated"][row, sequence])
            reward = float(samples["next", "reward"][row, sequence])
            total = reward + going * GAMMA**ahead * back(float(target[bootstrap][best]))
            value = float(online[row][int(samples["action"][row, sequence])])
            weight = float(samples["priority_weight"][row, sequence])
            found[row, sequence] = weight, value, change(total)
    return found


def sampled(**loss):
    """Return a trainer with a target that is not the network, values that spread, and sequences with other errors."""
    trainer = make_trainer("run.total_frames=320", sections={**SEQUENCES, "loss": {**SEQUENCES["loss"], **loss}})
    trainer.train()
    generator = torch.Generator().manual_seed(6)
    with torch.no_grad():
        for parameter in trainer.model.parameters():
            parameter += torch.randn(parameter.shape, generator=generator)
    return trainer.learner._loss, trainer.model, trainer.buffer.sample(40)


@pytest.mark.parametrize("error", ["l2", "smooth_l1"])
@pytest.mark.parametrize(("double", "rescale"), [(True, True), (False, True), (True, False)])
def test_the_loss_is_that_of_a_loop_over_sequences_and_steps(double, rescale, error):
    loss, model, samples = sampled(double=double, rescale=rescale, error=error)
    found = loss(samples)
    expected = errors_of(model, samples, double, rescale)
    td_error = torch.zeros(samples[MASK].shape, dtype=torch.float64)
    total = 0.0
    for (row, sequence), (weight, value, target) in expected.items():
        td_error[row, sequence] = target - value
        size = abs(target - value)
        total += weight * (0.5 * size**2 if error == "l2" or size < 1 else size - 0.5)
    assert samples["priority_weight"].unique().numel() > 3
    begins = samples["first"][: BURN_IN + 1].any(0)
    assert begins.any()
    assert not begins.all(), "some sequences begin with a stored state"
    assert torch.allclose(found["td_error"].double(), td_error, rtol=1e-4, atol=1e-4)
    assert found["loss_q"].item() == pytest.approx(total / len(expected), rel=1e-4)
    back = inverse if rescale else float
    mean = np.mean([back(value) for _, value, _ in expected.values()])
    assert float(found["q_value"]) == pytest.approx(mean, rel=1e-3, abs=1e-4)


def test_no_gradient_goes_through_the_burn_in():
    loss, model, samples = sampled()
    seen = samples["observation"].clone().requires_grad_()
    samples["observation"] = seen
    loss(samples)["loss_q"].backward()
    assert not seen.grad[:BURN_IN].any()
    assert seen.grad[BURN_IN : BURN_IN + LENGTH].any()
    assert not seen.grad[BURN_IN + LENGTH :].any(), "the values that a target takes have no gradient"
    before = loss(samples)["loss_q"]
    with torch.no_grad():
        seen[:BURN_IN] += 1
    assert not torch.equal(before, loss(samples)["loss_q"]), "what is seen there counts"
    assert all(parameter.grad is None for parameter in model.target_q_values.parameters())


def test_padding_counts_for_nothing():
    loss, _, samples = sampled()
    whole = loss(samples)
    ends = samples["observation"].shape[0] - 1 - samples[MASK].flip(0).int().argmax(0)  # the last trained row
    reach = ends + samples["steps_to_next_obs"].gather(0, ends.unsqueeze(0))[0]
    row = torch.arange(len(samples["observation"])).reshape(-1, 1, 1)
    behind = row > reach
    assert behind.any()
    samples["observation"] = torch.where(behind, 99.0, samples["observation"])
    samples["next", "reward"] = torch.where(samples[MASK], samples["next", "reward"], 99.0)
    padded = loss(samples)
    assert torch.equal(whole["loss_q"], padded["loss_q"])
    assert torch.equal(whole["td_error"], padded["td_error"])


def test_rescaling_and_its_inverse():
    returns = torch.tensor([-1e4, -3.0, -1e-3, 0.0, 0.5, 1.0, 100.0, 5e4])
    values = rescaled(returns)
    assert torch.allclose(values.double(), torch.tensor([h(float(x)) for x in returns], dtype=torch.float64))
    assert torch.allclose(returns_of(values), returns, rtol=1e-4, atol=1e-6)


def test_it_is_refused_without_memory_and_without_sequences():
    with pytest.raises(ConfigError, match=r"\[loss\] r2d2 learns from sequences .* this model has none"):
        make_run(sections={**SEQUENCES, "model": AROUND["model"]})
    with pytest.raises(ConfigError, match=r'\[buffer\] use: .* R2D2Loss takes sequences; set use = "replay:sequences"'):
        make_run(sections={**SEQUENCES, "buffer": {"use": "replay"}})


RECURRENT = {**SEQUENCES, "model": {"use": "dqn:recurrent-q-network", "size": 6, "encoder_hidden": [5]}}


@pytest.mark.slow
def test_a_resumed_run_with_workers_goes_on_in_the_middle_of_episodes_and_sequences(tmp_path):
    pytest.importorskip("rlcore_plugin_parallel")
    workers = {"use": "parallel:workers", "processes": "always", "frames_per_batch": 16, "num_workers": 2}
    whole = check_resumed(tmp_path, "run.total_frames=96", sections={**RECURRENT, "collector": workers})
    assert whole.progress.updates > 2


def test_a_resumed_run_goes_on_in_the_middle_of_episodes_and_sequences(tmp_path):
    assert check_resumed(tmp_path, "run.total_frames=96", sections=RECURRENT).progress.updates > 2


def test_a_policy_with_memory_sees_the_same_sequences_as_its_network():
    """Values that the unrolled network gives at stored states are those by which the policy acted."""
    trainer = make_trainer("run.total_frames=64", "buffer.warmup_frames=1000", sections=RECURRENT)
    batches = []
    for _ in trainer:
        batches.append(trainer.collector.collect().clone())
        trainer.buffer.add(batches[-1])
    model, samples = trainer.model, trainer.buffer.sample(50)
    acted = {}
    for batch in batches:
        for env in range(2):
            for time in range(batch.shape[1]):
                step = batch[env, time]
                with torch.no_grad():
                    one = (entry.unsqueeze(0) for entry in (step["observation"], step["policy_state"], step["first"]))
                    acted[tuple(step["observation"].tolist())] = model.q_values(*one)[0]
    with torch.no_grad():
        values = model.q_values(samples["observation"], samples["policy_state"], samples["first"])
    compared = 0
    for row, sequence in samples[MASK].squeeze(-1).nonzero().tolist():
        seen = tuple(samples["observation"][row, sequence].tolist())
        if seen in acted:
            compared += 1
            assert torch.allclose(values[row, sequence], acted[seen], atol=1e-5)
    assert compared > 20


def test_a_policy_with_memory_is_refused_where_steps_are_shuffled():
    for changes in ({"buffer": {"use": "replay"}, "loss": {"use": "dqn"}}, {"buffer": {"use": "rollout"}}):
        with pytest.raises(ConfigError, match=r"\[(buffer|loss)\]|bootstrap_row"):
            make_run(sections={**RECURRENT, **changes})
