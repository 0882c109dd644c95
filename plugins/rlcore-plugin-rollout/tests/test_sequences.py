"""Sequences of a policy with a state: what is refused before the first frame, and what masked steps do not change."""

from __future__ import annotations

import pytest
import torch
from rlcore_plugin_testing import make_run

from rlcore import ConfigError

SEQUENCES = {"use": "rollout-sequences", "minibatch_size": 8, "sequence_length": 4}
MEMORY = {"model": {"use": "testing:toy-memory"}}


def refused(message, **sections):
    with pytest.raises(ConfigError, match=message):
        make_run(sections={**MEMORY, "buffer": SEQUENCES, **sections})


def test_a_policy_with_a_state_and_a_buffer_that_shuffles_steps_are_refused():
    refused(r"\[buffer\] RolloutBuffer .*rollout-sequences", buffer={"use": "rollout", "minibatch_size": 8})


def test_sequences_of_a_policy_without_a_state_are_refused():
    refused(r"\[buffer\] rollout-sequences .*has none", model={"use": "testing:toy"})


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"sequence_length": 16, "minibatch_size": 16}, r"sequence_length = 16 does not divide the 8 steps"),
        ({"sequence_length": 3, "minibatch_size": 9}, r"sequence_length = 3 does not divide the 8 steps"),
        ({"minibatch_size": 6}, r"minibatch_size = 6 is no multiple of sequence_length = 4"),
        ({"minibatch_size": 20}, r"minibatch_size = 20 is more than the 16 steps of a batch"),
    ],
)
def test_lengths_that_do_not_fit_are_refused(keys, message):
    refused(message, buffer={**SEQUENCES, **keys})


def test_a_loss_and_an_estimator_that_know_no_states_are_refused(monkeypatch):
    monkeypatch.setattr("rlcore_plugin_testing.toy_parts.ToyLoss.takes_memory", False)
    refused(r"\[loss\] ToyLoss does not know policies with a state")
    monkeypatch.setattr("rlcore_plugin_testing.toy_parts.ToyLoss.takes_memory", True)
    monkeypatch.delattr("rlcore_plugin_testing.toy_parts.ToyEstimator.takes_memory")
    refused(r"\[estimator\] ToyEstimator does not know policies with a state")


@pytest.mark.parametrize("loss", ["ppo", "ppo:a2c"])
def test_what_stands_in_masked_steps_changes_no_loss(loss):
    buffer = {**SEQUENCES, "minibatch_size": 16}
    sections = {**MEMORY, "buffer": buffer, "loss": {"use": loss, "normalize_advantage": True}}
    env = {"use": "testing:toy", "reset_mode": "next_step"}
    trainer = make_run(sections={**sections, "env": env, "estimator": {"use": "ppo:gae"}}).trainer
    batch = trainer.collector.collect()
    trainer.parts.estimator(batch)
    minibatch = dict(next(iter(trainer.parts.buffer.minibatches(batch))).items())
    mask = minibatch["collector", "mask"]
    assert 0 < mask.sum() < mask.numel()
    expected = trainer.learner._loss(minibatch)
    for key in ("advantage", "value_target", "sample_log_prob"):
        minibatch[key] = torch.where(mask, minibatch[key], 7.0)
    assert trainer.learner._loss(minibatch) == expected
