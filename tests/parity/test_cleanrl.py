"""The example with CleanRL's settings takes the updates that CleanRL's `ppo_continuous_action.py` would take."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.distributions import Normal

from rlcore import build, hookimpl, load_config

EXAMPLE = Path(__file__).parents[2] / "examples" / "ppo-mujoco-cleanrl.toml"
FRAMES, GAMMA, LAMBDA, CLIP = 256, 0.99, 0.95, 0.2


class Agent(nn.Module):
    """The agent of CleanRL."""

    def __init__(self, observations: int, actions: int) -> None:
        super().__init__()
        sizes = [observations, 64, 64]
        self.critic, self.actor_mean = (
            nn.Sequential(
                *(nn.Linear(sizes[0], 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs)),
            )
            for outputs in (1, actions)
        )
        self.actor_logstd = nn.Parameter(torch.zeros(1, actions))

    def get_action_and_value(self, x, action):
        mean = self.actor_mean(x)
        probs = Normal(mean, torch.exp(self.actor_logstd.expand_as(mean)))
        return probs.log_prob(action).sum(1), probs.entropy().sum(1), self.critic(x)


def copied(model, observations, actions):
    agent = Agent(observations, actions)
    for network, ours in ((agent.critic, model.critic), (agent.actor_mean, model.actor.network)):
        for layer, source in zip(network[::2], ours.layers, strict=True):
            layer.load_state_dict({name: value.clone() for name, value in source.state_dict().items()})
    with torch.no_grad():
        agent.actor_logstd.copy_(model.actor.log_std)
    return agent


class Watch:
    """Keeps the batch with its advantages, the minibatches, and the agent before the first update."""

    def __init__(self):
        self.minibatches = []

    @hookimpl
    def pre_optim_steps(self, batch, trainer):
        self.agent = copied(trainer.model, batch["observation"].shape[-1], batch["action"].shape[-1])

    @hookimpl
    def pre_epoch(self, batch):
        self.batch = batch.clone()

    @hookimpl
    def process_optim_batch(self, minibatch):
        keys = ("observation", "action", "sample_log_prob", "advantage", "value_target", "state_value")
        self.minibatches.append({key: minibatch[key].clone() for key in keys})


@pytest.fixture(scope="module")
def trained():
    watch = Watch()
    few = [f"collector.frames_per_batch={FRAMES}", f"run.total_frames={FRAMES}", "buffer.epochs=2"]
    run = build(load_config(EXAMPLE, few), write=False, hooks=[watch])
    before = copied(run.trainer.model, 17, 6)
    run.trainer.train()
    return run, watch, before


def gains(layers):
    return [float(torch.linalg.matrix_norm(layer.weight, 2)) for layer in layers]


def test_the_weights_begin_as_those_of_cleanrl(trained):
    _, _, before = trained
    root = np.sqrt(2)
    assert gains(before.actor_mean[::2]) == pytest.approx([root, root, 0.01], rel=1e-5)
    assert gains(before.critic[::2]) == pytest.approx([root, root, 1.0], rel=1e-5)
    assert not before.actor_logstd.any()
    assert not any(layer.bias.any() for layer in (*before.actor_mean[::2], *before.critic[::2]))


def test_actions_are_clipped_and_batches_hold_what_was_chosen(trained):
    _, watch, _ = trained
    assert watch.batch["action"].abs().max() > 1
    assert watch.batch["observation"].abs().max() <= 10
    assert watch.batch["next", "reward"].abs().max() <= 10


@torch.no_grad()
def test_advantages_and_values_are_those_of_cleanrl(trained):
    _, watch, _ = trained
    batch = watch.batch[0]
    assert not batch["next", "done"].any()
    values, rewards = watch.agent.critic(batch["observation"]).flatten(), batch["next", "reward"].flatten()
    following, last = watch.agent.critic(batch["next", "observation"][-1:]).item(), 0.0
    advantages = torch.zeros(FRAMES)
    for t in reversed(range(FRAMES)):
        delta = rewards[t] + GAMMA * following - values[t]
        advantages[t] = last = delta + GAMMA * LAMBDA * last
        following = values[t]
    torch.testing.assert_close(batch["state_value"].flatten(), values, rtol=0, atol=1e-5)
    torch.testing.assert_close(batch["advantage"].flatten(), advantages, rtol=0, atol=1e-5)
    torch.testing.assert_close(batch["value_target"].flatten(), advantages + values, rtol=0, atol=1e-5)


def cleanrl_update(agent, optimizer, mb):
    """Take one step as the loop over minibatches of CleanRL does."""
    newlogprob, entropy, newvalue = agent.get_action_and_value(mb["observation"], mb["action"])
    ratio = (newlogprob - mb["sample_log_prob"].view(-1)).exp()
    mb_advantages = mb["advantage"].view(-1)
    mb_advantages = (mb_advantages - mb_advantages.mean()) / (mb_advantages.std() + 1e-8)
    pg_loss1 = -mb_advantages * ratio
    pg_loss2 = -mb_advantages * torch.clamp(ratio, 1 - CLIP, 1 + CLIP)
    pg_loss = torch.max(pg_loss1, pg_loss2).mean()
    newvalue, returns, values = newvalue.view(-1), mb["value_target"].view(-1), mb["state_value"].view(-1)
    v_loss_unclipped = (newvalue - returns) ** 2
    v_clipped = values + torch.clamp(newvalue - values, -CLIP, CLIP)
    v_loss = 0.5 * torch.max(v_loss_unclipped, (v_clipped - returns) ** 2).mean()
    loss = pg_loss - 0.0 * entropy.mean() + v_loss * 0.5
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
    optimizer.step()


def test_the_updates_are_those_of_cleanrl(trained):
    run, watch, _ = trained
    optimizer = torch.optim.Adam(watch.agent.parameters(), lr=3e-4, eps=1e-5)
    assert len(watch.minibatches) == 2 * FRAMES // 64
    for minibatch in watch.minibatches:
        cleanrl_update(watch.agent, optimizer, minibatch)
    ours = copied(run.trainer.model, 17, 6)
    for (name, expected), value in zip(watch.agent.named_parameters(), ours.parameters(), strict=True):
        torch.testing.assert_close(value, expected, rtol=0, atol=1e-5, msg=name)
        assert expected.abs().max() > 0, "every parameter has moved"
