"""How many updates a run makes is known before it, and an optimizer that would never step is refused."""

from __future__ import annotations

import re

import pytest
import torch
from rlcore_plugin_rollout.rollout import RolloutBuffer
from rlcore_plugin_testing import make_run

from rlcore import ConfigError, Context, Progress
from rlcore.training.checks import most_updates
from rlcore.types import RunInfo

REPLAY = {"use": "replay", "capacity": 64, "minibatch_size": 4, "updates_per_batch": 3}
RUNS = {
    "rollout": ["buffer.epochs=3", "run.total_frames=70"],
    "rollout, dropped remainder": ["buffer.minibatch_size=5"],
    "rollout, filled remainder": ["buffer.minibatch_size=5", "buffer.remainder=fill"],
    "replay without warm-up": ["buffer.warmup_frames=0"],
    "replay, warm-up of one batch": ["buffer.warmup_frames=16"],
    "replay, warm-up within a batch": ["buffer.warmup_frames=33", "run.total_frames=100"],
    "replay, warm-up to the end": ["buffer.warmup_frames=64"],
    "replay, warm-up beyond the end": ["buffer.warmup_frames=65"],
}


def run_of(name, *further):
    sections = {"evaluator": None}
    if name.startswith("replay"):
        sections |= {"model": {"use": "dqn:q-network", "hidden": [4]}, "loss": {"use": "dqn"}}
        sections |= {"buffer": REPLAY, "estimator": None, "env": {"use": "testing:toy", "actions": "discrete"}}
    return make_run(*RUNS[name], *further, sections=sections)


def refused(name):
    """Return the number of updates that a refusal tells, 0 where nothing is refused."""
    try:
        run_of(name, "optimizer.0.every=999999")
    except ConfigError as error:
        return int(
            re.search(r"'adam': every = 999999 never comes round, as the run makes (\d+) updates", str(error))[1]
        )
    return 0


@pytest.mark.parametrize("name", RUNS)
def test_the_updates_of_a_run_are_counted_before_it(name):
    assert run_of(name).trainer.train().updates == refused(name)


def test_a_pace_that_comes_round_once_is_none_of_it():
    assert refused("replay without warm-up") == 12
    assert run_of("replay without warm-up", "optimizer.0.every=12")


def test_what_cannot_be_known_is_not_refused():
    assert run_of("rollout", "optimizer.0.every=999", "env.reset_mode=next_step"), "masked steps are no frames"
    assert run_of("replay, warm-up beyond the end", "optimizer.0.every=999"), "it only collects"


def test_a_run_that_trains_nothing_is_warned_of_before_its_first_frame(caplog):
    run_of("replay, warm-up to the end")
    assert "trains nothing" not in caplog.text, "the last batch is followed by updates"
    run_of("replay, warm-up beyond the end")
    assert "[buffer] warmup_frames = 65: the run ends after 64 frames ([run] total_frames), so it trains" in caplog.text


class Twice(RolloutBuffer):
    """A user's, which inherits a count that is not its own."""

    def minibatches(self, batch):
        yield from super().minibatches(batch)
        yield from super().minibatches(batch)


@pytest.mark.parametrize(("kind", "expected"), [(RolloutBuffer, 8), (Twice, None)])
def test_a_subclass_that_yields_others_is_not_counted(kind, expected):
    parts = run_of("rollout").trainer.parts
    context = Context(RunInfo("run", 1, 16 * 4), torch.device("cpu"), Progress(64), "buffer", "rollout")
    context.parts.update(collector=parts.collector, env_spec=parts.collector._spec)
    context.parts["buffer"] = kind(kind.Config(minibatch_size=8), context)
    assert most_updates(context) == expected
