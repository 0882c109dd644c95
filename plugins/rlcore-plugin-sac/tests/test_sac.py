"""The loss of SAC against plain loops over samples and critics, and which loss moves which part."""

import math

import numpy as np
import pytest
import torch
from rlcore_plugin_testing import make_run, make_trainer

from rlcore.errors import ConfigError

from .sections import AROUND, DROPOUT, around

SAMPLES, GAMMA = 12, 0.9
ALL = ("loss_critics", "loss_actor", "loss_temperature")


def made_up(steps=False, weights=False):
    generator = torch.Generator().manual_seed(5)
    minibatch = {
        "observation": torch.randn(SAMPLES, 3, generator=generator),
        "action": torch.rand(SAMPLES, 2, generator=generator) * 2.5 - 0.5,
        ("next", "observation"): torch.randn(SAMPLES, 3, generator=generator),
        ("next", "reward"): 2 * torch.randn(SAMPLES, 1, generator=generator),
        ("next", "terminated"): torch.rand(SAMPLES, 1, generator=generator) < 0.3,
    }
    if steps:
        minibatch["steps_to_next_obs"] = torch.randint(1, 4, (SAMPLES, 1), generator=generator)
    if weights:
        minibatch["priority_weight"] = torch.rand(SAMPLES, 1, generator=generator)
    return minibatch


def built(model=None, **loss):
    """Return loss and model, with targets that are not the critics and values that spread."""
    trainer = make_trainer(sections=around(model=model, loss={"gamma": GAMMA, **loss}))
    generator = torch.Generator().manual_seed(6)
    with torch.no_grad():
        for parameter in trainer.model.parameters():
            parameter += 0.5 * torch.randn(parameter.shape, generator=generator)
    return trainer.learner._loss, trainer.model


def with_noise(loss, minibatch, seed=7):
    noise = loss.sample_noise(SAMPLES, torch.Generator().manual_seed(seed))
    assert not set(noise) & set(minibatch)
    return {**minibatch, **noise}


def sampled(model, observation, noise):
    """Return an action in the env's units, and its log-density scaled to [-1, 1], in float64."""
    mean, log_std = (part.double().numpy() for part in model.actor(observation).detach().split(2, -1))
    noise = noise.double().numpy()
    inner = mean + np.exp(log_std) * noise
    density = -0.5 * noise**2 - log_std - 0.5 * math.log(2 * math.pi) + 2 * (np.logaddexp(inner, -inner) - math.log(2))
    return torch.as_tensor(0.75 + 1.25 * np.tanh(inner), dtype=torch.float32), float(density.sum())


def targets(entries, model, temperature, chosen):
    """Return the target of each sample."""
    results = []
    for row in range(SAMPLES):
        following = entries["next", "observation"][row]
        action, log_prob = sampled(model, following, entries["next", "noise"][row])
        values = [float(value) for value in model.target_critics(following, action)]
        steps = int(entries["steps_to_next_obs"][row]) if "steps_to_next_obs" in entries else 1
        going = 0.0 if entries["next", "terminated"][row] else GAMMA**steps
        value = min(values[index] for index in chosen) - temperature * log_prob
        results.append(float(entries["next", "reward"][row]) + going * value)
    return np.array(results)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("steps", [False, True])
@pytest.mark.parametrize("temperature", ["auto", 0.3])
@pytest.mark.parametrize("critics", [1, 2])
def test_the_critics_learn_the_soft_target(critics, temperature, steps, weights):
    loss, model = built({"critics": critics}, temperature=temperature)
    entries = with_noise(loss, made_up(steps, weights))
    alpha = math.exp(model.temperature.log_alpha.item()) if temperature == "auto" else temperature
    with torch.no_grad():
        target = targets(entries, model, alpha, range(critics))
        values = model.critics(entries["observation"], entries["action"]).squeeze(-1).numpy()
    errors = target - values
    factor = entries["priority_weight"].squeeze(-1).numpy() if weights else 1.0
    found = loss(entries)
    assert found["loss_critics"].item() == pytest.approx(0.5 * (errors**2 * factor).mean(1).sum(), rel=1e-4)
    assert found["q_value"].item() == pytest.approx(values.mean(), rel=1e-4)
    np.testing.assert_allclose(found["td_error"].squeeze(-1), np.abs(errors).max(0), rtol=1e-4, atol=1e-5)


def test_the_target_of_redq_is_the_least_of_some_critics():
    loss, model = built({"critics": 5}, target_subset=2)
    seen = set()
    for seed in range(5):
        entries = with_noise(loss, made_up(), seed)
        chosen = entries["target_members"].tolist()
        seen.add(tuple(chosen))
        assert len(set(chosen)) == 2
        with torch.no_grad():
            expected = targets(entries, model, math.exp(model.temperature.log_alpha.item()), chosen)
            errors = expected - model.critics(entries["observation"], entries["action"]).squeeze(-1).numpy()
        assert loss(entries)["loss_critics"].item() == pytest.approx(0.5 * (errors**2).mean(1).sum(), rel=1e-4)
    assert len(seen) > 1, "chosen again in each update"


@pytest.mark.parametrize("subset", [None, 2])
def test_the_actor_maximises_value_and_entropy(subset):
    """The least of all critics; their mean with a subset."""
    loss, model = built({"critics": 3}, **({} if subset is None else {"target_subset": subset}))
    entries, terms, densities = with_noise(loss, made_up()), [], []
    alpha = math.exp(model.temperature.log_alpha.item())
    with torch.no_grad():
        for row in range(SAMPLES):
            action, log_prob = sampled(model, entries["observation"][row], entries["noise"][row])
            values = [float(value) for value in model.critics(entries["observation"][row], action)]
            terms.append(alpha * log_prob - (min(values) if subset is None else np.mean(values)))
            densities.append(log_prob)
    found = loss(entries)
    assert found["loss_actor"].item() == pytest.approx(np.mean(terms), rel=1e-4)
    assert found["entropy"].item() == pytest.approx(-np.mean(densities), rel=1e-4)
    found["loss_temperature"].backward()
    assert model.temperature.log_alpha.grad.item() == pytest.approx(-(np.mean(densities) - 2), rel=1e-4)


def test_the_temperature_rises_where_there_is_too_little_entropy():
    loss, model = built(target_entropy=1.3)
    loss(with_noise(loss, made_up()))["loss_temperature"].backward()
    assert model.temperature.log_alpha.grad < 0


def test_what_is_not_asked_for_is_not_read():
    loss, _ = built()
    entries = with_noise(loss, made_up())
    of_actor = {key: entries[key] for key in ("observation", "noise")}
    assert set(loss(of_actor, ("loss_actor", "loss_temperature"))) == {
        "loss_actor",
        "entropy",
        "loss_temperature",
        "temperature",
    }


def test_dropout_is_that_of_the_noise_in_every_use():
    loss, _ = built({key: DROPOUT[key] for key in ("hidden", "norm", "dropout")})
    entries = with_noise(loss, made_up())
    for index in range(2):
        mask = entries[f"dropout_{index}"]
        assert mask.shape == (3, 2, SAMPLES, 8)
        assert mask.unique().tolist() == pytest.approx([0.0, 1 / 0.75])
    whole = loss(entries)
    for use, name in ((0, "loss_critics"), (1, "loss_critics"), (2, "loss_actor")):
        other = {key: value.clone() for key, value in entries.items()}
        other["dropout_1"][use] = 0.0
        changed = {key for key, value in loss(other).items() if not torch.equal(value, whole[key])}
        assert name in changed
        assert ("loss_actor" in changed) == (use == 2)


def test_about_as_much_is_left_out_as_the_key_says():
    loss, _ = built({"dropout": 0.25, "hidden": [64]})
    mask = loss.sample_noise(100, torch.Generator().manual_seed(1))["dropout_0"]
    assert (mask == 0).float().mean().item() == pytest.approx(0.25, abs=0.01)


def test_a_huge_temperature_is_finite():
    loss, model = built()
    with torch.no_grad():
        model.temperature.log_alpha.fill_(200.0)
    found = loss(with_noise(loss, made_up()))
    assert all(value.isfinite().all() for value in found.values())
    assert found["temperature"].item() == pytest.approx(math.exp(20), rel=1e-3)


@pytest.mark.parametrize(
    ("model", "loss", "message"),
    [
        ({}, {"target_subset": 3}, r"\[loss\] target_subset = 3 is more than \[model\] critics = 2"),
        ({}, {"target_entropy": 1.4}, r"\[loss\] target_entropy = 1.4 cannot be reached: 2 actions"),
        ({}, {"temperature": 0.1, "target_entropy": -1.0}, r"\[loss\] target_entropy counts with temperature = 'auto'"),
        ({}, {"temperature": -0.1}, "temperature"),
        ({"dropout": 1.0}, {}, "dropout"),
        ({"critics": 0}, {}, "critics"),
        ({"initial_temperature": 0.0}, {}, "initial_temperature"),
    ],
)
def test_settings_that_cannot_work_are_refused(model, loss, message):
    with pytest.raises(ConfigError, match=message):
        make_run(sections=around(model=model, loss=loss))


def test_a_loss_without_its_parts_is_refused():
    with pytest.raises(ConfigError, match="requires the model parts critics, target_critics, temperature"):
        make_run(sections={**AROUND, "model": {"use": "mlp"}})
