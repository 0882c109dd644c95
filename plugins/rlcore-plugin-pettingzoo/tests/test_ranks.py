"""Several policies in several processes: they learn what one process learns, also where one has no rows of a policy."""

import os
import signal
from pathlib import Path

import pytest
import torch
from rlcore_plugin_policies.batches import OwnBatches
from rlcore_plugin_testing import make_config
from rlcore_plugin_testing.ranks import digests, in_ranks
from rlcore_plugin_testing.train_command import TrainCommand, children

from rlcore import hookimpl
from rlcore.run.asked import ResumeOptions
from rlcore.run.build import build

from .mixed import SECTIONS

# a batch is one episode and the step that begins the next; a minibatch is all valid rows of it, so that each has the
# same weight however the games are divided
WHOLE = {
    **SECTIONS,
    "run": {**SECTIONS["run"], "total_frames": 120},
    "loss": {"use": "ppo", "normalize_advantage": False, "walkers": {"entropy_coef": 0.02}},
    "collector": {"frames_per_batch": 54},
    "buffer": {"minibatch_size": 32, "epochs": 3, "flyers": {"minibatch_size": 8, "epochs": 2}},
    "evaluator": [],
    "checkpoint": {"use": "testing:toy", "every": 100},
}


class Rows:
    """Counts the valid rows of each policy in every batch."""

    def __init__(self):
        self.flyers = []

    @hookimpl
    def batch_process(self, batch, trainer):
        model = trainer.model
        own = OwnBatches(model.shares, model.policy, batch.batch_size[0]).of("flyers", batch)
        self.flyers.append(int(own["collector", "mask"].sum()))


def train(folder, *overrides, sections=WHOLE, resume=False, stop_at=1_000):
    """Train in two ranks; return the run of each, and how many rows of flyers each had in its batches."""
    config = make_config("ranks.count=2", *overrides, sections=sections, folder=folder)
    config.run.place.mkdir(exist_ok=True)
    hooks = [Rows(), Rows()]

    def rank(group):
        run = build(config, group=group, resume=resume, hooks=[hooks[group.rank]])
        run.trainer.stop_at = min(stop_at, run.trainer.stop_at)
        run.trainer.train()
        return run

    return in_ranks(2, rank), [hook.flyers for hook in hooks]


def assert_as_one_process(folder, sections):
    config = make_config(sections=sections)
    alone = build(config, write=False)
    untrained = {name: value.clone() for name, value in alone.trainer.model.state_dict().items()}
    alone.trainer.train()
    ranks, rows = train(folder, sections=sections)
    one, other = (run.trainer.model.state_dict() for run in ranks)
    for name, expected in alone.trainer.model.state_dict().items():
        assert torch.equal(one[name], other[name]), name
        torch.testing.assert_close(one[name], expected, rtol=1e-5, atol=1e-6)
        assert not torch.equal(expected, untrained[name]) or name.endswith("scale"), name
    clocks = [run.trainer.progress.state_dict() for run in (alone, *ranks)]
    assert all(clock == clocks[0] for clock in clocks)
    return rows


def test_two_ranks_learn_what_one_process_learns(tmp_path):
    assert_as_one_process(tmp_path, WHOLE)


def test_a_rank_without_rows_of_a_policy_learns_what_the_others_do(tmp_path):
    """Batches are of 4 steps, so that the second one has no flyer in a game that its flyer left after the first."""
    sections = {
        **WHOLE,
        "run": {**WHOLE["run"], "seed": 4, "total_frames": 36},
        "env": {**WHOLE["env"], "kwargs": {"uneven": True}},
        "collector": {"frames_per_batch": 24},
        "buffer": {"minibatch_size": 16, "epochs": 3, "flyers": {"minibatch_size": 8, "epochs": 2}},
    }
    rows = assert_as_one_process(tmp_path, sections)
    assert sorted(rows) == [[4, 0], [4, 4]]


def test_a_run_that_stopped_goes_on_to_the_bits_of_one_that_did_not(tmp_path):
    sections = {**WHOLE, "buffer": SECTIONS["buffer"], "collector": SECTIONS["collector"]}
    train(tmp_path, "run.name=whole", sections=sections)
    train(tmp_path, sections=sections, stop_at=50)
    assert digests(tmp_path / "toy") != digests(tmp_path / "whole")
    train(tmp_path, sections=sections, resume=ResumeOptions())
    assert digests(tmp_path / "toy") == digests(tmp_path / "whole")


@pytest.mark.slow
def test_a_rank_that_is_killed_costs_time_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    sections = {
        **SECTIONS,
        "run": {"name": "killed", "seed": 2, "total_frames": 2_000, "device": "cpu"},
        "env": {**SECTIONS["env"], "id": "mixed:Mixed"},
        "metrics": {"every": 400},
        "logger": [{"use": "csv"}],
        "checkpoint": {"use": "torch", "every": 500},
        "ranks": {"count": 2},
    }
    undisturbed = TrainCommand(tmp_path, {**sections, "run": {**sections["run"], "name": "undisturbed"}})
    assert undisturbed.end() == 0, undisturbed.text()
    killed = TrainCommand(tmp_path, sections)
    killed.wait_for(500)
    (template,) = children(killed.process.pid)
    os.kill(children(template)[1], signal.SIGKILL)
    assert killed.end() == 0, killed.text()
    assert "rank 1 was killed by SIGKILL" in killed.text()
    assert killed.result() == undisturbed.result()
