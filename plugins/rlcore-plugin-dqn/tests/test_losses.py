"""The losses: their values against plain loops over samples, the update that is made of them."""

import shutil

import numpy as np
import pytest
import torch
from rlcore_plugin_testing import check_resumed, make_run, make_trainer

from rlcore.errors import ConfigError

from .sections import AROUND, C51, QR, changed

SAMPLES, GAMMA = 12, 0.9
REPLAY = {"use": "replay", "capacity": 60, "minibatch_size": 8, "updates_per_batch": 4, "warmup_frames": 16}


def test_c51_needs_a_network_of_distributions():
    with pytest.raises(ConfigError, match="atoms = 51"):
        make_run(sections={**AROUND, "loss": {"use": "dqn:c51"}})


def test_a_loss_without_its_parts_is_refused():
    with pytest.raises(ConfigError, match="requires the model parts target_q_values"):
        make_run(sections={**AROUND, "model": {"use": "mlp", "parts": ["actor", "q_values"]}})


def made_up(steps=False, weights=False):
    generator = torch.Generator().manual_seed(5)
    minibatch = {
        "observation": torch.randn(SAMPLES, 3, generator=generator),
        "action": torch.randint(2, (SAMPLES,), generator=generator),
        ("next", "observation"): torch.randn(SAMPLES, 3, generator=generator),
        ("next", "reward"): 2 * torch.randn(SAMPLES, 1, generator=generator),
        ("next", "terminated"): torch.rand(SAMPLES, 1, generator=generator) < 0.3,
    }
    if steps:
        minibatch["steps_to_next_obs"] = torch.randint(1, 4, (SAMPLES, 1), generator=generator)
    if weights:
        minibatch["priority_weight"] = torch.rand(SAMPLES, 1, generator=generator)
    return minibatch


def built(sections, **loss):
    """Return loss and model, with a target that is not the network and values that spread."""
    trainer = make_trainer(sections={**sections, "loss": {**sections["loss"], "gamma": GAMMA, **loss}})
    model, generator = trainer.model, torch.Generator().manual_seed(6)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += torch.randn(parameter.shape, generator=generator)
    return trainer.learner._loss, model


def samples(minibatch, model, double):
    """Yield per sample: its observation, action, reward, discount of what follows (0 after an end), next action."""
    for row in range(SAMPLES):
        following = minibatch["next", "observation"][row]
        chooser = model.q_values if double else model.target_q_values
        steps = int(minibatch["steps_to_next_obs"][row]) if "steps_to_next_obs" in minibatch else 1
        discount = 0.0 if minibatch["next", "terminated"][row] else GAMMA**steps
        best = int(chooser(following.unsqueeze(0))[0].argmax())
        yield row, int(minibatch["action"][row]), float(minibatch["next", "reward"][row]), discount, best


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("steps", [False, True])
@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("error", ["l1", "l2", "smooth_l1"])
def test_dqn_is_the_error_of_the_target(error, double, steps, weights):
    loss, model = built(AROUND, error=error, double=double)
    minibatch = made_up(steps, weights)
    errors = []
    with torch.no_grad():
        for row, action, reward, discount, best in samples(minibatch, model, double):
            target = reward + discount * float(model.target_q_values(minibatch["next", "observation"][row])[best])
            errors.append(target - float(model.q_values(minibatch["observation"][row])[action]))
    errors = np.array(errors)
    size = np.abs(errors)
    each = {"l1": size, "l2": 0.5 * size**2, "smooth_l1": np.where(size < 1, 0.5 * size**2, size - 0.5)}[error]
    factor = minibatch["priority_weight"].squeeze(-1).numpy() if weights else 1.0
    found = loss(minibatch)
    assert found["loss_q"].item() == pytest.approx((each * factor).mean(), rel=1e-4)
    np.testing.assert_allclose(found["td_error"].squeeze(-1), errors, rtol=1e-4, atol=1e-5)
    found["loss_q"].backward()
    assert all(parameter.grad is None for parameter in model.target_q_values.parameters())


def projected(values, probabilities, support):
    """Return the projection as algorithm 1 of the paper writes it, atom by atom."""
    result, distance = np.zeros(len(support)), support[1] - support[0]
    for value, probability in zip(values, probabilities, strict=True):
        place = np.clip((value - support[0]) / distance, 0, len(support) - 1)
        low, high = int(np.floor(place)), int(np.ceil(place))
        if low == high:
            result[low] += probability
        else:
            result[low] += probability * (high - place)
            result[high] += probability * (place - low)
    return result


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("steps", [False, True])
@pytest.mark.parametrize("double", [False, True])
def test_c51_is_the_cross_entropy_to_the_projected_target(double, steps, weights):
    loss, model = built(C51, double=double)
    minibatch = made_up(steps, weights)
    support = model.q_values.support.numpy().astype(np.float64)
    cross, divergence = [], []
    with torch.no_grad():
        for row, action, reward, discount, best in samples(minibatch, model, double):
            following = model.target_q_values.logits(minibatch["next", "observation"][row])[best].softmax(-1)
            target = projected(reward + discount * support, following.double().numpy(), support)
            assert target.sum() == pytest.approx(1.0)
            log_probs = model.q_values.logits(minibatch["observation"][row])[action].log_softmax(-1).double().numpy()
            cross.append(-(target * log_probs).sum())
            positive = target[target > 0]
            divergence.append(cross[-1] + (positive * np.log(positive)).sum())
    factor = minibatch["priority_weight"].squeeze(-1).numpy() if weights else 1.0
    found = loss(minibatch)
    assert found["loss_q"].item() == pytest.approx((np.array(cross) * factor).mean(), rel=1e-4)
    np.testing.assert_allclose(found["td_error"].squeeze(-1), divergence, rtol=1e-3, atol=1e-4)


def weights_of(network):
    return torch.cat([parameter.detach().flatten().clone() for parameter in network.parameters()])


def test_the_learner_moves_the_target_at_its_interval():
    loss = {"use": "dqn", "target_interval": 6}
    trainer = make_trainer(sections={**AROUND, "loss": loss, "buffer": REPLAY})
    model, updates, moved = trainer.model, [], []
    target = weights_of(model.target_q_values)
    for progress in trainer:
        now = weights_of(model.target_q_values)
        updates.append(progress.updates)
        moved.append(not torch.equal(now, target))
        target = now
    assert updates == [4, 8, 12, 16]
    assert moved == [False, True, True, False], "after 6 and 12 updates"


def goes_on_as_the_whole(folder, sections, *overrides):
    """Prioritized, noisy, over several steps, and between two moves of the target network."""
    loss = {**sections["loss"], "target_interval": 3, "double": True}
    buffer = {**REPLAY, "use": "replay:prioritized", "n_steps": 3}
    schedule = [{"use": "linear", "target": "buffer.beta", "final": 2.0}]
    sections = {**sections, "loss": loss, "buffer": buffer, "scheduler": schedule}
    assert check_resumed(folder, *overrides, sections=sections).progress.updates == 16


NOISY_QUANTILES = changed(QR, duelling=True, noisy=True)


@pytest.mark.parametrize(
    "sections",
    [NOISY_QUANTILES, changed(C51, duelling=True, noisy=True, epsilon_start=0.3)],
    ids=["quantiles", "rainbow"],
)
def test_a_resumed_run_draws_the_noise_that_the_other_draws(tmp_path, sections):
    goes_on_as_the_whole(tmp_path, sections)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_a_resumed_run_draws_the_same_noise_with_a_compiled_update(tmp_path):
    goes_on_as_the_whole(tmp_path, NOISY_QUANTILES, "learner.compile=true")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
@pytest.mark.parametrize("sections", [AROUND, C51, NOISY_QUANTILES], ids=["dqn", "c51", "noisy qr-dqn"])
def test_the_compiled_update_is_the_eager_one(sections):
    """Also with importance weights and discounts over several steps, which the loss looks for and need not be there."""
    buffer = {**REPLAY, "use": "replay:prioritized", "n_steps": 2}
    loss = {**sections["loss"], "double": True, "target_interval": 5, "target_tau": 0.5}
    results = []
    for compiled in ("false", "true"):
        trainer = make_trainer(
            f"learner.compile={compiled}",
            "learner.max_grad_norm=0.5",
            sections={**sections, "loss": loss, "buffer": buffer},
        )
        trainer.train()
        assert trainer.progress.updates == 16
        latest = trainer.metrics.latest
        results.append((trainer.model.state_dict(), latest["train/loss_q"], latest["train/td_error/max"]))
    for name, value in results[0][0].items():
        torch.testing.assert_close(results[1][0][name], value, atol=1e-5, rtol=1e-4)
    assert results[1][1:] == pytest.approx(results[0][1:], rel=1e-4)


@pytest.mark.slow
def test_with_the_default_error_values_stay_within_the_returns():
    """Of CartPole, 100 at most. With the smooth L1 error they are beyond that after as many frames, and grow on."""
    sections = {
        "run": {"seed": 1, "total_frames": 500_000},
        "env": {"use": "gymnasium", "id": "CartPole-v1"},
        "model": {"use": "dqn:q-network", "epsilon_fraction": 0.5},
        "loss": {"use": "dqn", "target_interval": 50},
        "optimizer": [{"use": "adam", "lr": 2.5e-4}],
        "estimator": None,
        "evaluator": None,
        "collector": {"frames_per_batch": 10},
        "buffer": {"use": "replay", "capacity": 10_000, "minibatch_size": 128, "warmup_frames": 10_000},
        "metrics": {"every": 5000},
    }
    values = {}
    for error in ("l2", "smooth_l1"):
        trainer = make_trainer(f"loss.error='{error}'", sections=sections)
        trainer.stop_at = 35_000
        trainer.train()
        values[error] = trainer.metrics.latest["train/q_value"]
    assert 15 < values["l2"] < 60
    assert values["smooth_l1"] > 150, "the page of DQN says so, and why"
