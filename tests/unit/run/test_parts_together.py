"""Parts of a run that each rank has a share of: replay, collectors with worker processes, hooks that stop the run."""

from __future__ import annotations

import pytest
import torch
from rlcore_plugin_testing.ranks import digests, in_ranks
from rlcore_plugin_testing.small_run import make_config

from rlcore.run.asked import ResumeOptions
from rlcore.run.build import build

CARTPOLE = {"use": "gymnasium", "id": "CartPole-v1", "num_envs": 4, "vectorization": "serial"}
COMMON = {"env": CARTPOLE, "model": {"use": "mlp", "hidden": [8]}, "checkpoint": {"use": "testing:toy", "every": 64}}
ON_POLICY = {
    **COMMON,
    "loss": {"use": "ppo"},
    "estimator": {"use": "gae"},
    "buffer": {"use": "rollout", "epochs": 1, "minibatch_size": 16},
}
REPLAY = {
    **COMMON,
    "model": {"use": "dqn:q-network", "hidden": [8]},
    "loss": {"use": "dqn"},
    "estimator": None,
    "collector": {"use": "local", "frames_per_batch": 32},
    "buffer": {"use": "replay", "capacity": 96, "minibatch_size": 16, "warmup_frames": 32, "replay_ratio": 1.5},
}


def train(folder, *overrides, sections, resume=False, stop_at=192):
    """Train in two ranks, and return the run of each."""
    config = make_config("ranks.count=2", "run.total_frames=192", *overrides, sections=sections, folder=folder)
    config.run.place.mkdir(exist_ok=True)

    def rank(group):
        run = build(config, group=group, resume=resume)
        run.trainer.stop_at = stop_at
        run.trainer.train()
        return run

    return in_ranks(2, rank)


def assert_same_weights(runs):
    one, other = (run.trainer.parts.model.state_dict() for run in runs)
    for name, expected in one.items():
        torch.testing.assert_close(other[name], expected, rtol=0, atol=0)


@pytest.mark.parametrize("use", ["replay", "replay:prioritized"])
def test_each_rank_keeps_its_share_of_a_replay_and_all_take_as_many_updates(tmp_path, use):
    sections = {**REPLAY, "buffer": {**REPLAY["buffer"], "use": use}}
    runs = train(tmp_path, "run.name=whole", sections=sections)
    assert_same_weights(runs)
    for run in runs:
        progress, buffer = run.trainer.progress, run.trainer.parts.buffer
        assert progress.frames == 192
        assert progress.updates * 16 == 1.5 * 192  # minibatches of 16 are those of both together
        assert len(buffer) == 48
        assert len(buffer.sample()) == 8
    places = [run.trainer.parts.buffer.state_dict()["generator"] for run in runs]
    assert not torch.equal(*places), "each samples by numbers of its own"
    train(tmp_path, sections=sections, stop_at=96)
    train(tmp_path, sections=sections, resume=ResumeOptions())
    assert digests(tmp_path / "toy") == digests(tmp_path / "whole")


@pytest.mark.parametrize(
    "keys",
    [{"use": "parallel:central"}, {"use": "parallel:workers", "processes": "always"}],
    ids=["central", "workers"],
)
def test_worker_processes_of_each_rank_give_the_bits_of_ranks_without(tmp_path, keys):
    collector = {"use": "local", "frames_per_batch": 32}
    train(tmp_path, "run.name=local", sections={**ON_POLICY, "collector": collector})
    collector |= {**keys, "start_method": "forkserver", "num_workers": 2}
    runs = train(tmp_path, sections={**ON_POLICY, "collector": collector})
    assert_same_weights(runs)
    assert digests(tmp_path / "toy")["model"] == digests(tmp_path / "local")["model"]


def test_workers_ahead_of_each_rank_are_taken_as_they_are_done(tmp_path):
    collector = {"use": "parallel:workers", "mode": "async", "order": "ready", "max_lag": 2, "frames_per_batch": 32}
    runs = train(tmp_path, sections={**ON_POLICY, "collector": {**collector, "start_method": "forkserver"}})
    assert_same_weights(runs)
    assert [run.trainer.progress.frames for run in runs] == [192, 192]
    assert all(max(run.trainer.collector.lags) <= 2 for run in runs)


def test_early_stopping_decides_on_the_first_rank_for_all(tmp_path, caplog):
    hook = {"use": "early-stopping", "monitor": "evaluation/return", "patience": 1, "min_delta": 1000.0}
    collector = {"use": "local", "frames_per_batch": 32}
    runs = train(tmp_path, sections={**ON_POLICY, "collector": collector, "hook": [hook]})
    frames = [run.trainer.progress.frames for run in runs]
    assert frames[0] == frames[1] < 192
    assert "did not improve" in runs[0].trainer.stop_reason
    assert "never logged" not in caplog.text
