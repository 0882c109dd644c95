"""Discrete SAC: values against plain loops over samples and actions, the uniform beginning, bad input."""

import math
import shutil

import numpy as np
import pytest
import torch
from rlcore_plugin_testing import check_resumed, make_run, make_trainer

from rlcore.errors import ConfigError

from .more_sections import DISCRETE, REPLAY

SAMPLES, ACTIONS, GAMMA = 12, 3, 0.9


def built(**loss):
    """Return loss and model, with critics that differ from their targets."""
    model = {**DISCRETE["model"], "critics": 3, "initial_temperature": 0.4}
    sections = {**DISCRETE, "model": model, "loss": {**DISCRETE["loss"], "gamma": GAMMA, **loss}}
    trainer = make_trainer(sections=sections)
    generator = torch.Generator().manual_seed(6)
    with torch.no_grad():
        for name, parameter in trainer.model.named_parameters():
            if name != "temperature.log_alpha":
                parameter += torch.randn(parameter.shape, generator=generator)
    return trainer.learner._loss, trainer.model


def made_up():
    generator = torch.Generator().manual_seed(5)
    return {
        "observation": torch.randn(SAMPLES, 3, generator=generator),
        "action": torch.randint(ACTIONS, (SAMPLES,), generator=generator),
        ("next", "observation"): torch.randn(SAMPLES, 3, generator=generator),
        ("next", "reward"): torch.randn(SAMPLES, 1, generator=generator),
        ("next", "terminated"): torch.rand(SAMPLES, 1, generator=generator) < 0.3,
        "steps_to_next_obs": torch.randint(1, 4, (SAMPLES, 1), generator=generator),
        "priority_weight": torch.rand(SAMPLES, 1, generator=generator),
    }


def of_actions(model, critics, observation):
    """Return probabilities of the actions, and the least value of each, as numpy."""
    with torch.no_grad():
        probabilities = model.actor(observation).softmax(-1).double().numpy()
        return probabilities, critics(observation.unsqueeze(0))[:, 0].amin(0).double().numpy()


@pytest.mark.parametrize("temperature", ["auto", 0.2])
def test_the_losses_are_expectations_over_all_actions(temperature):
    loss, model = built(temperature=temperature, **({"target_entropy": 0.6} if temperature == "auto" else {}))
    minibatch, alpha = made_up(), 0.4 if temperature == "auto" else 0.2
    squares, errors, actor, entropies = [], [], [], []
    for row in range(SAMPLES):
        probabilities, values = of_actions(model, model.target_critics, minibatch["next", "observation"][row])
        following = sum(p * (value - alpha * math.log(p)) for p, value in zip(probabilities, values, strict=True))
        steps, over = int(minibatch["steps_to_next_obs"][row]), bool(minibatch["next", "terminated"][row])
        target = float(minibatch["next", "reward"][row]) + (0 if over else GAMMA**steps * following)
        taken = model.critics(minibatch["observation"][row : row + 1])[:, 0, int(minibatch["action"][row])]
        errors.append(np.abs(target - taken.detach().numpy()).max())
        squares.append(0.5 * ((target - taken.detach().numpy()) ** 2).sum() * float(minibatch["priority_weight"][row]))
        probabilities, values = of_actions(model, model.critics, minibatch["observation"][row])
        actor.append(sum(p * (alpha * math.log(p) - value) for p, value in zip(probabilities, values, strict=True)))
        entropies.append(-sum(p * math.log(p) for p in probabilities))
    found = loss(minibatch)
    assert found["loss_critics"].item() == pytest.approx(np.mean(squares), rel=1e-4)
    np.testing.assert_allclose(found["td_error"].squeeze(-1), errors, rtol=1e-4, atol=1e-5)
    assert found["loss_actor"].item() == pytest.approx(np.mean(actor), rel=1e-4)
    assert found["entropy"].item() == pytest.approx(np.mean(entropies), rel=1e-4)
    if temperature == "auto":
        gap = np.mean(entropies) - 0.6 * math.log(ACTIONS)
        assert found["loss_temperature"].item() == pytest.approx(math.log(0.4) * gap, rel=1e-3)
        found["loss_temperature"].backward()
        assert model.temperature.log_alpha.grad.item() == pytest.approx(gap, rel=1e-3)
    assert ("loss_temperature" in found) == (temperature == "auto")


def test_the_first_frames_are_uniform_and_the_rest_are_the_actors():
    """To the frame, also within a batch; the actor here takes action 2 for sure."""
    sections = {**DISCRETE, "model": {**DISCRETE["model"], "random_frames": 2_000}}
    policy, model = (trainer := make_trainer(sections=sections)).model.policy, trainer.model
    with torch.no_grad():
        model.actor.network.layers[-1].bias.copy_(torch.tensor([0.0, 0.0, 1e6]))
    policy.refresh()
    noise = policy.draw(2_000, 2, torch.Generator().manual_seed(1))
    actions = torch.stack([policy.act(torch.zeros(2, 3), row)[0] for row in noise])
    counts = torch.bincount(actions[:1_000].flatten(), minlength=ACTIONS) / 2_000
    np.testing.assert_allclose(counts, 1 / ACTIONS, atol=0.04)
    assert (actions[1_000:] == 2).all()


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"env": {"use": "testing:toy", "actions": "bounded"}}, r"\[model\] discrete-actor-critic needs a discrete"),
        ({"model": {"use": "sac:actor-critic"}}, "needs"),
        ({"model": {"use": "dqn:q-network"}}, "requires the model parts actor, critics"),
        ({"loss": {"use": "sac:discrete-sac", "temperature": 0.1, "target_entropy": 0.6}}, r"\[loss\] target_entropy"),
        ({"loss": {"use": "sac:discrete-sac", "target_entropy": 1.0}}, r"loss.*target_entropy"),
    ],
)
def test_what_cannot_work_is_refused_before_the_first_frame(sections, message):
    with pytest.raises(ConfigError, match=message):
        make_run(sections={**DISCRETE, **sections})


def test_a_resumed_run_is_the_run_without_a_stop(tmp_path):
    buffer = {**REPLAY, "use": "replay:prioritized", "n_steps": 3, "gamma": 0.99}
    sections = {**DISCRETE, "loss": {**DISCRETE["loss"], "target_interval": 3}, "buffer": buffer}
    check_resumed(tmp_path, "model.random_frames=24", sections=sections)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_the_compiled_update_is_the_eager_one():
    results = []
    for compiled in ("false", "true"):
        trainer = make_trainer(f"learner.compile={compiled}", sections={**DISCRETE, "buffer": REPLAY})
        trainer.train()
        results.append((trainer.model.state_dict(), trainer.metrics.latest["train/loss_critics"]))
    for name, value in results[0][0].items():
        torch.testing.assert_close(results[1][0][name], value, atol=1e-5, rtol=1e-4)
    assert results[1][1] == pytest.approx(results[0][1], rel=1e-4)
