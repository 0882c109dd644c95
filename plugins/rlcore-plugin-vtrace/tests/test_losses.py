"""The IMPALA and APPO losses: their values against NumPy, the old policy, and the same step when it is compiled."""

import shutil

import numpy as np
import pytest
import torch
from rlcore_plugin_testing import check_resumed, make_trainer
from rlcore_plugin_testing.contracts import LossContract

SAMPLES = 40
AROUND = {"estimator": {"use": "vtrace"}}
IMPALA = LossContract.of("vtrace:impala", around=AROUND)
APPO = LossContract.of("vtrace:appo", around=AROUND)


def made_up():
    """Return a minibatch of the toy env in which the policy of the actions, the old one and today's differ."""
    generator = torch.Generator().manual_seed(1)

    def normal(*shape):
        return torch.randn(*shape, generator=generator)

    return {
        "observation": normal(SAMPLES, 3),
        "action": normal(SAMPLES, 1),
        "sample_log_prob": -1.2 + 0.8 * normal(SAMPLES, 1),
        "old_log_prob": -1.2 + 0.8 * normal(SAMPLES, 1),
        "advantage": normal(SAMPLES, 1),
        "value_target": normal(SAMPLES, 1),
        "state_value": normal(SAMPLES, 1),
    }


def outputs(context, entries):
    """Return the entries, log-probabilities of today and values, all in double precision."""
    model = context.model
    with torch.no_grad():
        log_prob = model.actor.distribution.log_prob(model.actor(entries["observation"]), entries["action"])
        value = model.critic(entries["observation"])
    data = {key: tensor.double().numpy() for key, tensor in entries.items()}
    return data, log_prob.double().numpy(), value.double().numpy()


def test_values_of_impala_are_those_of_the_paper():
    context, entries = IMPALA.bench(), made_up()
    loss = IMPALA.make(context, critic_coef=0.7)
    found = {name: value.item() for name, value in loss(entries).items()}
    data, log_prob, value = outputs(context, entries)
    ratio = np.exp(log_prob - data["sample_log_prob"])
    expected = {
        "loss_objective": -(log_prob * data["advantage"]).mean(),
        "loss_critic": 0.7 * 0.5 * ((value - data["value_target"]) ** 2).mean(),
        "kl_approx": (ratio - 1 - np.log(ratio)).mean(),
        "importance_weight": np.exp(data["old_log_prob"] - data["sample_log_prob"]).mean(),
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("importance_clip", [1.0, 1.5])
def test_values_of_appo_are_those_of_impact(importance_clip):
    """`min(mu / old, rho) * pi / mu`, as the paper writes the ratio."""
    context, entries = APPO.bench(), made_up()
    found = APPO.make(context, importance_clip=importance_clip, clip_epsilon=0.3)(entries)
    data, log_prob, _ = outputs(context, entries)
    of_old = np.exp(data["sample_log_prob"] - data["old_log_prob"])
    assert 0.2 < (of_old > importance_clip).mean() < 0.8
    ratio = np.minimum(of_old, importance_clip) * np.exp(log_prob - data["sample_log_prob"])
    surrogate = np.minimum(ratio * data["advantage"], ratio.clip(0.7, 1.3) * data["advantage"])
    expected = {
        "loss_objective": -surrogate.mean(),
        "clip_fraction": ((ratio < 0.7) | (ratio > 1.3)).mean(),
        "kl_approx": (ratio - 1 - np.log(ratio)).mean(),
        "importance_weight": (1 / of_old).mean(),
    }
    assert {name: found[name].item() for name in expected} == pytest.approx(expected, rel=1e-4)


def test_actions_of_the_old_policy_make_appo_ppo():
    context, entries = APPO.bench(), made_up()
    entries["old_log_prob"] = entries["sample_log_prob"]
    ppo = LossContract.of("ppo")
    assert APPO.make(context)(entries)["loss_objective"] == ppo.make(ppo.bench())(entries)["loss_objective"]


SECTIONS = {
    "loss": {"use": "vtrace:appo", "target_interval": 3},
    **AROUND,
    "checkpoint": {"use": "torch", "every": 16},
}


def weights_of(trainer):
    return torch.cat([parameter.detach().flatten() for parameter in trainer.model.parameters()])


def test_the_weights_are_those_of_the_old_policy():
    """V-trace takes the target network where there is one, and what is trained where there is none."""
    found = {}
    for target in (True, False):
        loss = SECTIONS["loss"] | {"target_network": target, "target_interval": 1000}
        trainer = make_trainer(sections={**SECTIONS, "loss": loss}, folder=None)
        trainer.train()
        batch = trainer.collector.collect()
        trainer.parts.estimator(batch)
        found[target] = batch["old_log_prob"] - batch["sample_log_prob"]
    assert found[True].abs().max() > 1e-3, "the old policy is not the one of the beginning"
    assert found[False].abs().max() < 1e-5, "the policy that chose the actions is another one than today's"


def test_the_old_policy_is_saved(tmp_path):
    """A run that stops between two moves of the target network goes on as if it had not."""
    whole = check_resumed(tmp_path, sections=SECTIONS)
    assert whole.progress.updates // 2 % 3, "the run stops where the target network has just moved"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
@pytest.mark.parametrize("loss", ["vtrace:impala", "vtrace:appo"])
def test_the_compiled_update_is_the_eager_one(loss):
    found = []
    for compiled in (False, True):
        learner = {"use": "gradient", "compile": compiled, "max_grad_norm": 0.5}
        sections = {**SECTIONS, "loss": {"use": loss}, "learner": learner}
        trainer = make_trainer(sections=sections)
        trainer.train()
        found.append(weights_of(trainer))
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)
