"""The losses of TD3 and DDPG against plain loops over samples and critics, and which loss moves which part."""

import numpy as np
import pytest
import torch
from rlcore_plugin_testing import make_run, make_trainer

from rlcore.errors import ConfigError

from .sections import DETERMINISTIC, ONE_CRITIC, around
from .test_sac import GAMMA, SAMPLES, made_up

MIDDLE, HALF = 0.75, 1.25


def built(sections=DETERMINISTIC, model=None, **loss):
    """Return loss and model, with targets that are not what is trained."""
    model = {**sections["model"], **(model or {})}
    trainer = make_trainer(sections={**sections, "model": model, "loss": {**sections["loss"], "gamma": GAMMA, **loss}})
    generator = torch.Generator().manual_seed(6)
    with torch.no_grad():
        for parameter in trainer.model.parameters():
            parameter += 0.5 * torch.randn(parameter.shape, generator=generator)
    return trainer.learner._loss, trainer.model


def with_noise(loss, minibatch):
    if loss.sample_noise is None:
        return minibatch
    return {**minibatch, **loss.sample_noise(SAMPLES, torch.Generator().manual_seed(7))}


def target_of(entries, model, row, noise, clip):
    """Return the target of a sample, in the env's units."""
    following = entries["next", "observation"][row]
    action = model.target_actor(following)
    if noise:
        added = (noise * entries["next", "noise"][row]).clamp(-clip, clip) * HALF
        action = (action + added).clamp(MIDDLE - HALF, MIDDLE + HALF)
    steps = int(entries["steps_to_next_obs"][row]) if "steps_to_next_obs" in entries else 1
    going = 0.0 if entries["next", "terminated"][row] else GAMMA**steps
    return float(entries["next", "reward"][row]) + going * float(model.target_critics(following, action).min())


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("steps", [False, True])
@pytest.mark.parametrize(("noise", "clip"), [(0.2, 0.5), (0.8, 0.1)])
@pytest.mark.parametrize("use", ["td3", "ddpg"])
def test_the_losses_are_those_of_the_papers(use, noise, clip, steps, weights):
    if use == "td3":
        loss, model = built(target_noise=noise, target_noise_clip=clip)
    else:
        (loss, model), noise = built(ONE_CRITIC), 0.0
    entries = with_noise(loss, made_up(steps, weights))
    with torch.no_grad():
        targets = np.array([target_of(entries, model, row, noise, clip) for row in range(SAMPLES)])
        errors = targets - model.critics(entries["observation"], entries["action"]).squeeze(-1).numpy()
        own = model.critics(entries["observation"], model.actor(entries["observation"]))
    factor = entries["priority_weight"].squeeze(-1).numpy() if weights else 1.0
    found = loss(entries)
    assert found["loss_critics"].item() == pytest.approx((errors**2 * factor).mean(1).sum(), rel=1e-4)
    np.testing.assert_allclose(found["td_error"].squeeze(-1), np.abs(errors).max(0), rtol=1e-4, atol=1e-5)
    assert found["loss_actor"].item() == pytest.approx(-own[0].mean().item(), rel=1e-4), "by the first critic"


def test_both_targets_follow_every_second_update():
    buffer = {"use": "replay", "capacity": 60, "minibatch_size": 8, "updates_per_batch": 1, "warmup_frames": 16}
    trainer = make_trainer(sections={**DETERMINISTIC, "buffer": buffer})
    model, moved = trainer.model, []
    before = {part: flat(getattr(model, part)) for part in ("target_actor", "target_critics")}
    for progress in trainer:
        now = {part: flat(getattr(model, part)) for part in before}
        moved.append((progress.updates, *(not torch.equal(now[part], before[part]) for part in before)))
        before = now
    assert moved == [(1, False, False), (2, True, True), (3, False, False), (4, True, True)]


def flat(module):
    return torch.cat([parameter.detach().flatten().clone() for parameter in module.parameters()])


def test_the_actor_steps_in_every_second_update():
    optimizers = [
        {"use": "adam", "name": "critics", "parameters": ["critics"], "losses": ["loss_critics"]},
        {"use": "adam", "name": "actor", "parameters": ["actor"], "losses": ["loss_actor"], "every": 2},
    ]
    buffer = {"use": "replay", "capacity": 60, "minibatch_size": 8, "updates_per_batch": 1, "warmup_frames": 16}
    trainer = make_trainer(sections={**DETERMINISTIC, "buffer": buffer, "optimizer": optimizers})
    before, moved = {part: flat(getattr(trainer.model, part)) for part in ("actor", "critics")}, []
    for _ in trainer:
        now = {part: flat(getattr(trainer.model, part)) for part in before}
        moved.append(tuple(not torch.equal(now[part], before[part]) for part in before))
        before = now
    assert moved == [(False, True), (True, True), (False, True), (True, True)]


def test_ddpg_has_one_critic():
    with pytest.raises(ConfigError, match=r"\[loss\] ddpg has one critic: set \[model\] critics = 1, not 2"):
        make_run(sections={**DETERMINISTIC, "loss": {"use": "sac:ddpg"}})


@pytest.mark.parametrize(("loss", "actor"), [("sac", "deterministic"), ("sac:td3", "stochastic")])
def test_a_loss_with_the_other_actor_is_refused(loss, actor):
    with pytest.raises(ConfigError, match=r"requires the model parts (temperature|target_actor)"):
        make_run(sections=around(model={"actor": actor}, loss={"use": loss}))


@pytest.mark.parametrize("key", ["target_noise", "target_noise_clip"])
def test_target_noise_wider_than_the_range_is_refused(key):
    with pytest.raises(ConfigError, match=key):
        make_run(sections={**DETERMINISTIC, "loss": {"use": "sac:td3", key: 2.5}})
