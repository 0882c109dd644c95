"""CrossQ: the joint batch, where gradients go, which statistics move when, resume, the compiled update, bad input."""

import math
import shutil

import numpy as np
import pytest
import torch
from rlcore_plugin_testing import check_resumed, make_run, make_trainer

from rlcore.errors import ConfigError

from .more_sections import CROSSQ, REPLAY

SAMPLES, GAMMA = 12, 0.9


def built(**model):
    """Return loss and model of a run, with weights and statistics that are none of the beginning."""
    sections = {**CROSSQ, "model": {**CROSSQ["model"], "initial_temperature": 0.4, **model}}
    trainer = make_trainer(sections={**sections, "loss": {**CROSSQ["loss"], "gamma": GAMMA}})
    generator = torch.Generator().manual_seed(6)
    with torch.no_grad():
        for name, parameter in trainer.model.named_parameters():
            if name != "temperature.log_alpha":
                parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
        for name, buffer in trainer.model.named_buffers():
            if name.endswith("running_mean"):
                buffer.uniform_(-0.3, 0.3, generator=generator)
    return trainer.learner._loss, trainer.model


def made_up(loss):
    generator = torch.Generator().manual_seed(5)
    return {
        "observation": torch.randn(SAMPLES, 3, generator=generator),
        "action": loss._box.from_unit(torch.rand(SAMPLES, 2, generator=generator) * 2 - 1),
        ("next", "observation"): torch.randn(SAMPLES, 3, generator=generator) + 1,
        ("next", "reward"): torch.randn(SAMPLES, 1, generator=generator),
        ("next", "terminated"): torch.rand(SAMPLES, 1, generator=generator) < 0.3,
        "steps_to_next_obs": torch.randint(1, 4, (SAMPLES, 1), generator=generator),
        "priority_weight": torch.rand(SAMPLES, 1, generator=generator),
        **loss.sample_noise(SAMPLES, generator),
    }


def statistics(part):
    return {name: buffer.clone() for name, buffer in part.named_buffers()}


def differing(part, before):
    return {name for name, buffer in part.named_buffers() if not torch.equal(buffer, before[name])}


def one_critic(model, index, inputs):
    """Return the values of one critic in plain numpy, normalised by the batch of its inputs."""
    for number, (norm, layer) in enumerate(zip(model.critics.norms, model.critics.layers, strict=True)):
        scale, shift, weight, bias = (
            value[index].detach().numpy() for value in (norm.scale, norm.shift, layer.weight, layer.bias)
        )
        inputs = np.maximum(inputs, 0) if number else inputs
        normal = (inputs - inputs.mean(0)) / np.sqrt(inputs.var(0) + 1e-3)
        inputs = (normal * scale + shift) @ weight + bias
    return inputs[:, 0]


def test_both_ends_are_one_batch_of_the_critics():
    """Against a plain computation: one batch of 2 * 12 rows, whose second half gives the target."""
    loss, model = built()
    minibatch = made_up(loss)
    with torch.no_grad():
        unit, log_prob = model.actor.rsample(minibatch["next", "observation"], minibatch["next", "noise"])
    observations = torch.cat([minibatch["observation"], minibatch["next", "observation"]])
    actions = torch.cat([model.box.to_unit(minibatch["action"]), unit])
    joint = torch.cat([observations, actions], -1).numpy()
    values = np.stack([one_critic(model, index, joint) for index in range(2)])
    following = values[:, SAMPLES:].min(0) - 0.4 * log_prob.squeeze(-1).numpy()
    flat = {key: value.squeeze(-1).numpy() for key, value in minibatch.items() if value.shape[-1:] == (1,)}
    going = ~flat["next", "terminated"]
    target = flat["next", "reward"] + GAMMA ** flat["steps_to_next_obs"] * going * following
    errors = target - values[:, :SAMPLES]
    found = loss(minibatch)
    expected = 0.5 * (errors**2 * flat["priority_weight"]).mean(1).sum()
    assert found["loss_critics"].item() == pytest.approx(expected, rel=1e-4)
    np.testing.assert_allclose(found["td_error"].squeeze(-1), np.abs(errors).max(0), rtol=1e-3, atol=1e-4)


def test_the_actor_learns_by_its_batch_and_the_critics_statistics():
    loss, _ = built()
    minibatch = made_up(loss)
    found = loss(minibatch, ("loss_actor", "loss_temperature"))
    _, fresh = built()
    with torch.no_grad():
        unit, log_prob = fresh.actor.rsample(minibatch["observation"], minibatch["noise"], update=True)
        value = fresh.critics(minibatch["observation"], fresh.box.from_unit(unit)).amin(0)
    assert found["loss_actor"].item() == pytest.approx((0.4 * log_prob - value).mean().item(), rel=1e-4)
    assert found["entropy"].item() == pytest.approx(-log_prob.mean().item(), rel=1e-4)
    gap = -log_prob.mean().item() + 2
    assert found["loss_temperature"].item() == pytest.approx(math.log(0.4) * gap, rel=1e-3)


@pytest.mark.parametrize(
    ("names", "expected"),
    [(("loss_critics",), {"critics"}), (("loss_actor",), {"actor"}), (None, {"critics", "actor"})],
)
def test_the_statistics_of_what_learns_move(names, expected):
    loss, model = built()
    before = {part: statistics(getattr(model, part)) for part in ("actor", "critics")}
    loss(made_up(loss), names)
    for part, kept in before.items():
        changed = differing(getattr(model, part), kept)
        assert changed == (set(kept) if part in expected else set()), part


def test_the_policy_and_evaluations_use_the_running_statistics():
    _, model = built()
    seen = torch.randn(7, 3)
    model.policy.refresh()
    with torch.no_grad():
        expected = model.actor.distribution.mode(model.actor(seen))
    torch.testing.assert_close(model.policy.mode(seen), expected)
    torch.testing.assert_close(model.policy.mode(seen[:1]), expected[:1])
    before = statistics(model)
    model.policy.mode(seen)
    assert not differing(model, before)


def paces():
    """The optimizers of the paper: actor and temperature step in every third update."""
    adam = {"use": "adam", "lr": 1e-3, "betas": [0.5, 0.999]}
    return [
        {**adam, "name": "critics", "parameters": ["critics"], "losses": ["loss_critics"]},
        {**adam, "name": "actor", "parameters": ["actor"], "losses": ["loss_actor"], "every": 3},
        {**adam, "name": "temperature", "parameters": ["temperature"], "losses": ["loss_temperature"], "every": 3},
    ]


def test_delayed_actors_move_in_every_third_update_and_their_statistics_with_them():
    trainer = make_trainer(sections={**CROSSQ, "optimizer": paces(), "buffer": REPLAY})
    trainer.train()
    model = trainer.model
    assert trainer.progress.updates == 16
    assert int(model.critics.norms[0].updates) == 16
    assert int(model.actor.network.norms[0].updates) == 5


def test_a_resumed_run_is_the_run_without_a_stop(tmp_path):
    """Between two steps of the actor; the statistics are the same to the bit."""
    sections = {**CROSSQ, "optimizer": paces(), "buffer": {**REPLAY, "use": "replay:prioritized"}}
    sections["model"] = {**CROSSQ["model"], "random_frames": 24, "norm_warmup": 7}
    check_resumed(tmp_path, sections=sections)


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"env": {"use": "testing:toy", "actions": "unbounded"}}, "finite bounds"),
        ({"env": {"use": "testing:toy", "actions": "discrete"}}, r"\[model\] .* needs actions in a Box"),
        ({"model": {"use": "sac:actor-critic"}}, r"\[loss\] crossq needs critics with batch renormalisation"),
        ({"loss": {"use": "sac"}}, "requires the model parts target_critics"),
        ({"loss": {"use": "sac:crossq", "temperature": 0.1, "target_entropy": -1.0}}, r"\[loss\] target_entropy"),
        ({"loss": {"use": "sac:crossq", "target_entropy": 5.0}}, "cannot be reached"),
        ({"model": {"use": "sac:crossq", "log_std_min": 3.0}}, "log_std_min"),
    ],
)
def test_what_cannot_work_is_refused_before_the_first_frame(sections, message):
    with pytest.raises(ConfigError, match=message):
        make_run(sections={**CROSSQ, **sections})


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_the_compiled_update_is_the_eager_one():
    """Weights and statistics, over the end of the warm-up."""
    results = []
    for compiled in ("false", "true"):
        sections = {**CROSSQ, "model": {**CROSSQ["model"], "norm_warmup": 5}, "buffer": REPLAY}
        trainer = make_trainer(f"learner.compile={compiled}", sections=sections)
        trainer.train()
        assert compiled == "false" or trainer.learner._compiled._functions, "it ran eagerly"
        results.append((trainer.model.state_dict(), trainer.metrics.latest["train/loss_critics"]))
    for name, value in results[0][0].items():
        torch.testing.assert_close(results[1][0][name], value, atol=1e-4, rtol=1e-3, msg=name)
    assert results[1][1] == pytest.approx(results[0][1], rel=1e-3)
