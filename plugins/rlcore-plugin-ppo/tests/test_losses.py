"""The PPO and A2C losses: their values against NumPy, and their gradients."""

import numpy as np
import pytest
import torch
from rlcore_plugin_ppo.loss import _standardise_counted, standardise
from rlcore_plugin_testing import make_trainer
from rlcore_plugin_testing.contracts import LossContract

from rlcore.types import MASK

SAMPLES = 40
PPO = LossContract.of("ppo")
A2C = LossContract.of("ppo:a2c")


def made_up(seed=1):
    """A minibatch of the toy env with every ratio off 1, some of them clipped."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator)

    return {
        "observation": normal(SAMPLES, 3),
        "action": normal(SAMPLES, 1),
        "sample_log_prob": -1.2 + 0.5 * normal(SAMPLES, 1),
        "advantage": normal(SAMPLES, 1),
        "value_target": 2 * normal(SAMPLES, 1),
        "state_value": normal(SAMPLES, 1),
    }


def numpy_of(entries):
    return {key: value.double().numpy() for key, value in entries.items()}


def toy_outputs(model, entries):
    """Log-probabilities, entropies and values of the toy model, from its weights."""
    weights = {name: value.double().numpy() for name, value in model.state_dict().items()}
    location = entries["observation"] @ weights["actor.linear.weight"].T + weights["actor.linear.bias"]
    log_prob = -0.5 * ((entries["action"] - location) / 0.5) ** 2 - np.log(0.5) - 0.5 * np.log(2 * np.pi)
    entropy = 0.5 + 0.5 * np.log(2 * np.pi) + np.log(0.5)
    return log_prob, entropy, entries["observation"] @ weights["critic.weight"].T + weights["critic.bias"]


def critic_error(difference, kind):
    if kind == "l2":
        return np.mean(0.5 * difference**2)
    absolute = np.abs(difference)
    return np.mean(np.where(absolute < 1, 0.5 * difference**2, absolute - 0.5))


@pytest.mark.parametrize("critic_loss", ["l2", "smooth_l1"])
@pytest.mark.parametrize("normalize", [False, True])
def test_values_of_ppo_are_those_of_the_paper(critic_loss, normalize):
    context = PPO.bench()
    keys = {"entropy_coef": 0.02, "critic_coef": 0.7, "clip_epsilon": 0.25}
    loss = PPO.make(context, critic_loss=critic_loss, normalize_advantage=normalize, **keys)
    entries = made_up()
    found = {name: value.item() for name, value in loss(entries).items()}
    data = numpy_of(entries)
    log_prob, entropy, value = toy_outputs(context.model, data)
    ratio = np.exp(log_prob - data["sample_log_prob"])
    advantage = data["advantage"]
    if normalize:
        advantage = (advantage - advantage.mean()) / advantage.std(ddof=1)
    surrogate = np.minimum(ratio * advantage, np.clip(ratio, 0.75, 1.25) * advantage)
    outside = (ratio < 0.75) | (ratio > 1.25)
    assert 0.1 < outside.mean() < 0.9
    expected = {
        "loss_objective": -surrogate.mean(),
        "loss_critic": 0.7 * critic_error(value - data["value_target"], critic_loss),
        "loss_entropy": -0.02 * entropy,
        "entropy": entropy,
        "kl_approx": (ratio - 1 - np.log(ratio)).mean(),
        "clip_fraction": outside.mean(),
    }
    assert found == pytest.approx(expected, rel=1e-4)


def test_the_clipped_critic_takes_the_worse_error():
    context = PPO.bench()
    entries = made_up()
    found = PPO.make(context, clip_value=True, clip_epsilon=0.3, critic_coef=1.0)(entries)["loss_critic"].item()
    data = numpy_of(entries)
    _, _, value = toy_outputs(context.model, data)
    clipped = data["state_value"] + np.clip(value - data["state_value"], -0.3, 0.3)
    errors = [(estimate - data["value_target"]) ** 2 for estimate in (value, clipped)]
    assert found == pytest.approx(0.5 * np.maximum(*errors).mean(), rel=1e-4)


def test_values_within_the_range_of_the_clipped_critic_have_their_whole_gradient():
    """Not those alone for which rounding leaves `old + (value - old)` at `value`."""
    context = PPO.bench()
    entries, weight = made_up(), context.model.critic.weight
    gradients = []
    for clip_value in (False, True):
        loss = PPO.make(context, clip_value=clip_value, clip_epsilon=1e3)(entries)["loss_critic"]
        gradients.append(torch.autograd.grad(loss, weight)[0])
    assert torch.equal(*gradients)


def test_before_the_first_update_the_gradient_is_the_policy_gradient():
    context = PPO.bench()
    loss, entries = PPO.make(context), made_up()
    actor = context.model.actor
    log_prob = actor.distribution.log_prob(actor(entries["observation"]), entries["action"])
    entries["sample_log_prob"] = log_prob.detach()
    parameters = list(actor.parameters())
    found = torch.autograd.grad(loss(entries)["loss_objective"], parameters)
    expected = torch.autograd.grad(-(log_prob * entries["advantage"]).mean(), parameters)
    for one, two in zip(found, expected, strict=True):
        torch.testing.assert_close(one, two)


def test_a_ratio_past_the_clip_pulls_no_further():
    context = PPO.bench()
    loss, entries = PPO.make(context), made_up()
    actor = context.model.actor
    log_prob = actor.distribution.log_prob(actor(entries["observation"]), entries["action"]).detach()
    parameters = list(actor.parameters())
    for advantage, shift, moves in ((1.0, 1.0, False), (-1.0, -1.0, False), (1.0, -1.0, True), (-1.0, 1.0, True)):
        entries["sample_log_prob"] = log_prob - shift
        entries["advantage"] = torch.full((SAMPLES, 1), advantage)
        gradients = torch.autograd.grad(loss(entries)["loss_objective"], parameters)
        assert any(bool(gradient.any()) for gradient in gradients) is moves


def test_the_gradient_is_the_slope_of_the_loss():
    """Against central differences, along a random direction."""
    context = PPO.bench()
    loss, entries = PPO.make(context).double(), {k: v.double() for k, v in made_up().items()}
    parameters = list(loss.parameters())
    direction = [torch.randn(p.shape, generator=torch.Generator().manual_seed(i)) for i, p in enumerate(parameters)]

    def total():
        return sum(value for name, value in loss(entries).items() if name.startswith("loss_"))

    gradients = torch.autograd.grad(total(), parameters, allow_unused=True)
    slope = sum(float((g * d).sum()) for g, d in zip(gradients, direction, strict=True) if g is not None)
    ends = []
    for sign in (1, -1):
        with torch.no_grad():
            for parameter, way in zip(parameters, direction, strict=True):
                parameter += sign * 1e-6 * way
            ends.append(total().item())
            for parameter, way in zip(parameters, direction, strict=True):
                parameter -= sign * 1e-6 * way
    assert slope == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-4)


def test_a_single_sample_can_be_normalised():
    context = PPO.bench()
    entries = {key: value[:1] for key, value in made_up().items()}
    assert all(bool(v.isfinite()) for v in PPO.make(context, normalize_advantage=True)(entries).values())


def test_values_of_a2c_are_those_of_the_paper():
    context = A2C.bench()
    entries = made_up()
    loss = A2C.make(context, entropy_coef=0.02, critic_coef=0.7)
    found = {name: value.item() for name, value in loss(entries).items()}
    data = numpy_of(entries)
    log_prob, entropy, value = toy_outputs(context.model, data)
    expected = {
        "loss_objective": -(log_prob * data["advantage"]).mean(),
        "loss_critic": 0.7 * critic_error(value - data["value_target"], "l2"),
        "loss_entropy": -0.02 * entropy,
        "entropy": entropy,
    }
    assert found == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("masked", [False, True])
def test_a_single_advantage_stays_as_it_is(masked):
    """One has no deviation, alone or where the other steps of its sequences do not count."""
    advantage = torch.tensor([[[2.0]], [[5.0]]] if masked else [[2.0]])
    mask = torch.tensor([[[True]], [[False]]])
    found = _standardise_counted(advantage, {MASK: mask}) if masked else standardise(advantage)
    assert found.flatten().tolist() == [2.0, 0.0][: found.numel()]


@pytest.mark.parametrize("loss", ["ppo", "ppo:a2c"])
def test_training_raises_the_return(loss):
    """On the toy env that pays for actions near 0.5, from a policy around 0."""
    sections = {
        "env": {"use": "testing:toy", "num_envs": 8, "reward": "aim"},
        "loss": {"use": loss, "entropy_coef": 0.0},
        "estimator": {"use": "ppo:gae", "standardise": True},
        "optimizer": [{"use": "adam", "lr": 0.02}],
        "collector": {"frames_per_batch": 256},
        "buffer": {"epochs": 2, "minibatch_size": 64},
        "evaluator": {"use": "episodes", "episodes": 3},
    }
    trainer = make_trainer("run.total_frames=5120", sections=sections)
    before = trainer.evaluate().mean_return
    trainer.train()
    after = trainer.last_evaluation.mean_return
    assert after > before
    assert after > 0.95 * trainer.last_evaluation.mean_length
