"""V-trace beside the sums of its paper, written out, and beside GAE where no weight differs from 1."""

import pytest
import torch
from rlcore_plugin_testing.contracts import EstimatorContract

VTRACE, GAE = EstimatorContract.of("vtrace"), EstimatorContract.of("ppo:gae")
ENDS = {(0, 3): "terminated", (1, 5): "truncated", (2, 11): "terminated"}
GAMMA, LMBDA, RHO, C = 0.9, 0.8, 1.2, 0.7


def batch_of(context, shift):
    """Return a batch whose actions were chosen with log-probabilities that differ from today's by `shift`."""
    batch = VTRACE.batch(context, dict(ENDS))
    actor = context.model.actor
    log_prob = actor.distribution.log_prob(actor(batch["observation"]), batch["action"]).detach()
    return batch.set("sample_log_prob", log_prob - shift)


def written_out(batch, ratio, next_value):
    """Return value targets and advantages by the sums of eq. 1, in float64, one step at a time."""
    value, reward = batch["state_value"].double(), batch["next", "reward"].double()
    done, terminated = batch["next", "done"], batch["next", "terminated"]
    envs, steps = done.shape[:2]
    following = torch.where(terminated, 0.0, next_value.double())
    delta = ratio.clamp(max=RHO) * (reward + GAMMA * following - value)
    target = value.clone()
    for env in range(envs):
        for start in range(steps):
            factor = 1.0
            for time in range(start, steps):
                target[env, start] += factor * delta[env, time]
                if done[env, time]:
                    break
                factor = factor * GAMMA * LMBDA * ratio[env, time].clamp(max=C)
    after = following.clone()
    inside = ~done[:, :-1]
    after[:, :-1] = torch.where(inside, target[:, 1:], after[:, :-1])
    return target, ratio.clamp(max=RHO) * (reward + GAMMA * after - value)


def test_is_the_sums_of_the_paper():
    context = VTRACE.bench()
    shift = torch.randn(3, 12, 1, generator=torch.Generator().manual_seed(1))
    batch = batch_of(context, shift)
    VTRACE.make(context, gamma=GAMMA, lmbda=LMBDA, rho_clip=RHO, c_clip=C)(batch)
    with torch.no_grad():
        next_value = context.model.critic(batch["next", "observation"])
        next_value[:, :-1] = torch.where(
            batch["next", "done"][:, :-1], next_value[:, :-1], context.model.critic(batch["observation"])[:, 1:]
        )
    target, advantage = written_out(batch, shift.double().exp(), next_value)
    torch.testing.assert_close(batch["value_target"].double(), target, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(batch["advantage"].double(), advantage, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("lmbda", [0.0, 0.95, 1.0])
def test_without_a_change_of_the_policy_targets_are_those_of_gae(lmbda):
    context = VTRACE.bench()
    batch = batch_of(context, 0.0)
    other = batch.clone()
    VTRACE.make(context, lmbda=lmbda)(batch)
    GAE.make(context, lmbda=lmbda)(other)
    torch.testing.assert_close(batch["value_target"], other["value_target"])
