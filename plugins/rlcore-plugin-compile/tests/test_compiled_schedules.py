"""Compiled updates follow schedules."""

from __future__ import annotations

from importlib import import_module

import pytest
import torch

from rlcore import ConfigError

# the tests of the eager update, and what they are made of
eager = import_module("plugins.rlcore-plugin-gradient.tests.test_schedules")
weights = eager.weights


def compiled_graphs():
    """How many graphs the compiler has made in this process, by its own count."""
    from torch._dynamo.utils import counters

    return counters["stats"]["unique_graphs"]


@pytest.mark.slow
def test_a_compiled_update_follows_a_schedule_without_compiling_again(build):
    schedule = [
        {"use": "linear", "target": "loss.entropy_coef", "final": 40.0},
        {"use": "linear", "target": "loss.clip_epsilon", "final": 0.1},
    ]
    arguments = {"loss": {"use": "ppo", "entropy_coef": 0.5}, "optimizer": [{"use": "adam", "lr": 0.01}]}
    eager = build(scheduler=schedule, **arguments)
    graph = build(scheduler=schedule, learner={"compile": True}, **arguments)
    constant = build(learner={"compile": True}, **arguments)
    eager.trainer.train()
    graphs_before = compiled_graphs()
    graph.trainer.train()
    assert compiled_graphs() == graphs_before + 1  # minibatches of one size, and one graph for all of them
    constant.trainer.train()
    torch.testing.assert_close(weights(eager), weights(graph), rtol=1e-4, atol=1e-5)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(weights(constant), weights(graph), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", ["eps", "adam.weight_decay"])
def test_a_number_that_a_compiled_update_holds_constant_is_not_scheduled(target, build):
    schedule = [{"use": "linear", "target": target, "final": 0.5}]
    build(scheduler=schedule)
    with pytest.raises(ConfigError, match=rf"\[scheduler\] target: .*{target!r} would stay what it is"):
        build(scheduler=schedule, learner={"compile": True})
