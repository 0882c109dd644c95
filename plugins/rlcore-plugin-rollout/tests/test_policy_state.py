"""Policies with a state: what a collector writes of it into batches, and carries from batch to batch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from rlcore_plugin_rollout.carrying import carried
from rlcore_plugin_rollout.stepping import EnvStepper
from rlcore_plugin_testing import make_run, through_checkpoint
from rlcore_plugin_testing.toy import ToyEnv

from rlcore.errors import PluginError, StorageError

MODEL = {"use": "testing:toy-memory"}
BUFFER = {"use": "rollout-sequences", "minibatch_size": 3, "sequence_length": 1}


def collector_of(reset_mode="same_step", model=MODEL, **env):
    sections = {"env": {"use": "testing:toy", "num_envs": 3, "reset_mode": reset_mode, **env}, "model": model}
    if model["use"] == MODEL["use"]:
        sections["buffer"] = BUFFER
    return make_run("collector.frames_per_batch=21", sections=sections).trainer.collector


def batches(collector, count):
    return torch.cat([collector.collect().clone() for _ in range(count)], dim=1)


@pytest.mark.parametrize(("reset_mode", "later"), [("same_step", 1), ("next_step", 2)])
def test_the_state_goes_from_step_to_step_and_begins_again_with_each_episode(reset_mode, later):
    collector = collector_of(reset_mode)
    body = collector._context.model.actor.body
    batch = batches(collector, 3)
    done = batch["next", "done"].squeeze(-1)
    starts = torch.zeros_like(done)
    starts[:, 0] = True
    starts[:, later:] |= done[:, :-later]
    assert torch.equal(batch["first"].squeeze(-1), starts)
    assert starts.sum() > 6
    state = torch.zeros(3, 4)
    with torch.no_grad():
        for time in range(batch.shape[1]):
            assert torch.equal(batch["policy_state"][:, time], state), "as the step before left it"
            state = body.step(batch["observation"][:, time], state, starts[:, time])
            assert torch.equal(batch["next", "policy_state"][:, time], state)
        rows = [batch[key].flatten(0, 1) for key in ("observation", "policy_state", "first")]
        log_prob = collector._context.model.actor.distribution.log_prob(
            collector._context.model.actor(*rows), batch["action"].flatten(0, 1)
        )
    torch.testing.assert_close(log_prob, batch["sample_log_prob"].flatten(0, 1))


@pytest.mark.parametrize("reset_mode", ["same_step", "next_step"])
def test_a_resume_in_the_middle_of_episodes_goes_on_with_their_states(reset_mode):
    whole, interrupted, resumed = (collector_of(reset_mode) for _ in range(3))
    expected = batches(whole, 4)[:, 14:]
    batches(interrupted, 2)
    resumed.load_state_dict(through_checkpoint(interrupted.state_dict()))
    found = batches(resumed, 2)
    assert expected["policy_state"][:, 0].abs().min() > 0, "episodes are under way"
    for key in expected.keys(True, True):
        assert torch.equal(found[key], expected[key]), key


def test_a_state_of_another_policy_is_refused():
    collector, other = collector_of(), collector_of(model={**MODEL, "size": 5})
    collector.collect()
    with pytest.raises(StorageError, match="state of the policy"):
        other.load_state_dict(through_checkpoint(collector.state_dict()))


def test_a_policy_whose_state_changes_its_shape_is_refused():
    collector = collector_of()
    act = collector._policy.act
    collector._policy.act = lambda seen, noise, state, first: (*act(seen, noise, torch.zeros(3, 4), first)[:2], state.T)
    with pytest.raises(PluginError, match="initial_state"):
        collector.collect()


def test_a_policy_without_a_state_pays_nothing(monkeypatch):
    monkeypatch.setattr("rlcore_plugin_rollout.policy_state.Remembering.__init__", None)
    collector = collector_of(model={"use": "testing:toy"})
    batch = collector.collect()
    assert not {"policy_state", "first"} & set(batch.keys())
    assert "memory" not in collector.state_dict()["episodes"]
    assert isinstance(collector._stepper, EnvStepper)
    assert collector._acting is collector._policy
    assert carried(collector._policy, 3) is collector._policy


def test_evaluation_carries_the_state():
    sections = {"model": MODEL, "buffer": BUFFER, "env": {"use": "testing:toy", "reward": "aim"}}
    trainer = make_run(sections=sections).trainer
    found = trainer.parts.evaluator.evaluate()
    count = len(found.seeds)
    body, actor = trainer.model.actor.body, trainer.model.actor
    env = ToyEnv(ToyEnv.Config(reward="aim", num_envs=count))
    observation, state, returns = env.reset(seed=found.seeds[0]), torch.zeros(count, 4), np.zeros(count)
    for time in range(max(found.lengths)):
        with torch.no_grad():
            state = body.step(torch.tensor(observation), state, torch.zeros(count, dtype=torch.bool))
            step = env.step(actor.distribution.mode(actor.head(state)).numpy())
        returns += step.reward * (time < np.array(found.lengths))
        observation = step.observation
    np.testing.assert_allclose(found.returns, returns, rtol=1e-5)
