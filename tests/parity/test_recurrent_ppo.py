"""PPO's loss of an LSTM, and its gradients, beside a loop by hand over torch's own cell."""

from __future__ import annotations

import pytest
import torch
from rlcore_plugin_testing import make_run

SECTIONS = {
    "env": {"use": "testing:toy", "actions": "discrete", "num_envs": 4, "reset_mode": "next_step"},
    "model": {"use": "recurrent:lstm", "size": 8, "encoder_hidden": [6]},
    "estimator": {"use": "ppo:gae"},
    "loss": {"use": "ppo", "clip_value": True, "normalize_advantage": True, "entropy_coef": 0.1},
    "collector": {"use": "local", "frames_per_batch": 64},
    "buffer": {"use": "rollout-sequences", "minibatch_size": 32, "sequence_length": 8},
}


def unrolled(model, minibatch):
    """Return logits and values by one step of torch's LSTM cell after another."""
    body, size = model.actor.body, model.actor.body.size
    layer, cell = body.entrance.network.layers[0], torch.nn.LSTMCell(6, size)
    weights = {name.removesuffix("_l0"): value for name, value in body.cell.named_parameters()}
    hidden, memory = minibatch["policy_state"].split(size, -1)
    logits, values = [], []
    for seen, first in zip(minibatch["observation"], minibatch["first"], strict=True):
        hidden, memory = (torch.where(first, torch.zeros(()), part) for part in (hidden, memory))
        features = torch.tanh(seen @ layer.weight.T + layer.bias)
        hidden, memory = torch.func.functional_call(cell, weights, (features, (hidden, memory)))
        logits.append(model.actor.head.network.layers[0](hidden))
        values.append(model.critic.head.layers[0](hidden))
    return torch.stack(logits), torch.stack(values)


def ppo_by_hand(model, minibatch):
    """Return the loss, over the steps that count alone."""
    counted = minibatch["collector", "mask"].squeeze(-1)
    logits, value = (outputs[counted] for outputs in unrolled(model, minibatch))
    action, old, advantage, target, before = (
        minibatch[key][counted] for key in ("action", "sample_log_prob", "advantage", "value_target", "state_value")
    )
    policy = torch.distributions.Categorical(logits=logits)
    ratio = (policy.log_prob(action) - old.squeeze(-1)).exp()
    advantage = ((advantage - advantage.mean()) / (advantage.std() + 1e-8)).squeeze(-1)
    objective = -torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
    clipped = before + (value - before).clamp(-0.2, 0.2)
    error = 0.5 * torch.maximum((value - target).square(), (clipped - target).square()).mean()
    return objective + 0.5 * error - 0.1 * policy.entropy().mean()


@pytest.mark.parametrize("use", ["recurrent:lstm", "recurrent:gru"])
def test_values_of_the_estimator_are_those_along_whole_sequences(use):
    trainer = make_run(sections={**SECTIONS, "model": {**SECTIONS["model"], "use": use}}).trainer
    batch = trainer.collector.collect()
    trainer.parts.estimator(batch)
    by_time = [batch[key].transpose(0, 1) for key in ("observation", "policy_state", "first")]
    with torch.no_grad():
        expected = trainer.model.critic(by_time[0], by_time[1][0], by_time[2])
    torch.testing.assert_close(batch["state_value"].transpose(0, 1), expected)


def test_loss_and_gradients_are_those_of_a_loop_by_hand():
    trainer = make_run(sections=SECTIONS).trainer
    batch = trainer.collector.collect()
    trainer.parts.estimator(batch)
    model, loss = trainer.model, trainer.learner._loss
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.8 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(parameter.numel()))
    for minibatch in trainer.parts.buffer.minibatches(batch):
        entries = dict(minibatch.items())
        assert entries["first"][1:].any(), "episodes begin within sequences"
        assert not entries["collector", "mask"].all()
        losses = loss(entries)
        assert 0 < losses["clip_fraction"] < 1
        found = losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]
        expected = ppo_by_hand(model, entries)
        torch.testing.assert_close(found, expected)
        for (name, _), own, other in zip(
            model.named_parameters(),
            torch.autograd.grad(found, list(model.parameters())),
            torch.autograd.grad(expected, list(model.parameters())),
            strict=True,
        ):
            torch.testing.assert_close(own, other, msg=lambda text, name=name: f"{name}: {text}")
