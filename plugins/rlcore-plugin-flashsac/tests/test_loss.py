"""The loss against plain NumPy: which distributions, which entropies, which batches."""

import math

import numpy as np
import pytest
import torch
from rlcore_plugin_flashsac.batch import Statistics
from rlcore_plugin_testing import make_run, make_trainer

from rlcore.errors import ConfigError

from .sections import FLASH, OF_PAPERS, SCALES, around
from .test_categorical import one_by_one

SAMPLES, GAMMA, ALPHA, SCALE = 12, 0.9, 0.4, 2.0


def built(**model):
    """Return loss and model of a run, with weights that are none of the beginning."""
    model = {"initial_temperature": ALPHA, **model}
    trainer = make_trainer(sections=around(model=model, defaults={"gamma": GAMMA}))
    generator = torch.Generator().manual_seed(6)
    with torch.no_grad():
        for name, parameter in trainer.model.named_parameters():
            if name != "temperature.log_alpha":
                parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
        trainer.model.reward_scale.value.fill_(SCALE)
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


@pytest.mark.parametrize("method", list(OF_PAPERS))
def test_the_target_is_the_projected_soft_return_of_the_critic_with_the_least_mean(method):
    loss, model = built(**OF_PAPERS[method])
    minibatch = made_up(loss)
    actor, joint = model.actor, model.has_batch_norm
    with torch.no_grad():
        unit, log_prob = actor.rsample(minibatch["next", "observation"], minibatch["next", "noise"], Statistics.RUNNING)
        ends = [("observation", model.box.to_unit(minibatch["action"])), (("next", "observation"), unit)]
        both = [torch.cat([minibatch[key] for key, _ in ends]), torch.cat([action for _, action in ends])]
        of_both = [
            critics.log_probs(*both, statistics=Statistics.BATCH) for critics in (loss.critics, loss.target_critics)
        ]
    log_probs, following = (each.double().numpy() for each in of_both)
    log_probs, following = log_probs[:, :SAMPLES], np.exp(following[:, SAMPLES:])
    support = np.linspace(-5, 5, 11)
    least = (following @ support).argmin(0)
    flat = {key: value.numpy() for key, value in minibatch.items() if value.shape[-1:] == (1,)}
    going = ~flat["next", "terminated"]
    soft = support - ALPHA * log_prob.numpy()
    returns = flat["next", "reward"] / SCALE + GAMMA ** flat["steps_to_next_obs"] * going * soft
    target = one_by_one(returns, following[least, np.arange(SAMPLES)], support)
    errors = -(target * log_probs).sum(-1)
    values = loss(minibatch)
    assert values["loss_critics"].item() == pytest.approx((errors * flat["priority_weight"][:, 0]).mean(), rel=1e-4)
    entropy = -np.where(target > 0, target * np.log(np.maximum(target, 1e-30)), 0).sum(-1)
    np.testing.assert_allclose(values["td_error"][:, 0], (errors - entropy).max(0), atol=1e-4)
    assert joint == (method in ("flashsac", "xqc"))


def test_the_actor_normalises_by_both_ends_and_is_valued_by_running_statistics():
    loss, model = built()
    minibatch = made_up(loss)
    observations = torch.cat([minibatch["observation"], minibatch["next", "observation"]])
    with torch.no_grad():
        mean, log_std = model.actor.parameters_of(observations, Statistics.BATCH)[:SAMPLES].chunk(2, -1)
        unit = (mean + log_std.exp() * minibatch["noise"]).tanh()
        value = model.critics.values(minibatch["observation"], unit).amin(0)
        density = -0.5 * minibatch["noise"] ** 2 - log_std - 0.5 * math.log(2 * math.pi) - torch.log(1 - unit**2)
    log_prob = density.sum(-1, keepdim=True)
    values = loss(minibatch, ("loss_actor", "loss_temperature"))
    assert values["loss_actor"].item() == pytest.approx((ALPHA * log_prob - value).mean().item(), rel=1e-3)
    entropy = -log_prob.mean().item()
    assert values["entropy"].item() == pytest.approx(entropy, rel=1e-3)
    kept = math.log(2 * math.pi * math.e * 0.15**2)  # of two actions, each half of it
    assert values["loss_temperature"].item() == pytest.approx(math.log(ALPHA) * (entropy - kept), rel=1e-3)


@pytest.mark.parametrize(
    ("names", "moved"),
    [(("loss_critics",), {"critics"}), (("loss_actor",), {"actor"}), (None, {"critics", "actor"})],
)
def test_the_statistics_of_what_learns_move(names, moved):
    loss, model = built()
    parts = {part: getattr(model, part) for part in ("actor", "critics", "target_critics")}
    starts = {part: module.network.entry.norm.running_mean.clone() for part, module in parts.items()}
    loss(made_up(loss), names)
    changed = {
        part for part, module in parts.items() if not torch.equal(module.network.entry.norm.running_mean, starts[part])
    }
    assert changed == moved


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"env": {"use": "testing:toy", "actions": "unbounded"}}, "finite bounds"),
        ({"transform": []}, r"\[loss\] categorical-sac scales rewards .*flashsac:return-scale"),
        ({"model": {**FLASH["model"], "observation_norm": True}}, r"\[model\] observation_norm .*:observation-scale"),
        ({"transform": SCALES}, r"\[transform\] observation-scale counts for nothing"),
        ({"model": {"use": "sac:actor-critic"}}, r'\[loss\] categorical-sac .* use = "flashsac:blocks"'),
        ({"loss": {**FLASH["loss"], "target_entropy": -1.0, "target_std": 0.2}}, "leave one out"),
        ({"loss": {**FLASH["loss"], "target_entropy": 5.0}}, "cannot be reached"),
        ({"loss": {**FLASH["loss"], "target_std": 0.5}}, "target_std"),
        ({"model": {**FLASH["model"], "log_std_min": 3.0}}, "log_std_min"),
        ({"model": {**FLASH["model"], "block": "spherical"}}, "norm = 'none' and last_norm = false"),
        ({"model": {**FLASH["model"], **OF_PAPERS["simbav2"], "bounded": "none"}}, "bounded = 'weights'"),
        ({"model": {**FLASH["model"], "shift": 2.0}}, "shift counts for nothing"),
        ({"model": {**FLASH["model"], "block": "plain", "expansion": 2}}, "expansion counts for nothing"),
    ],
)
def test_what_cannot_work_is_refused_before_the_first_frame(sections, message):
    with pytest.raises(ConfigError, match=message):
        make_run(sections={**FLASH, **sections})
