from __future__ import annotations

import pytest

from rlcore import ConfigError, hookimpl

PENDULUM = {"use": "gymnasium", "id": "Pendulum-v1", "max_episode_steps": 20}


class Rewards:
    def __init__(self):
        self.batches, self.episodes = [], []

    @hookimpl
    def batch_process(self, batch):
        self.batches.append(batch["next", "reward"].clone())

    @hookimpl
    def episode_end(self, episode):
        self.episodes.append(episode.return_)


def test_reward_clip_clips_what_is_trained_on_and_not_what_is_reported(build):
    plain, clipped = Rewards(), Rewards()
    build([plain], env=PENDULUM, run={"total_frames": 32}).trainer.train()
    build(
        [clipped], env=PENDULUM, run={"total_frames": 32}, hook=[{"use": "reward-clip", "limit": 0.5}]
    ).trainer.train()
    assert plain.batches[0].min() < -0.5
    assert clipped.batches[0].min() >= -0.5
    assert (clipped.batches[0] == plain.batches[0].clamp(-0.5, 0.5)).all()
    assert clipped.episodes == plain.episodes
    assert len(plain.episodes) == 1


def test_reward_clip_refuses_a_limit_that_clips_everything(build):
    with pytest.raises(ConfigError, match=r"\[hook\] limit: Input should be greater than 0"):
        build(hook=[{"use": "reward-clip", "limit": 0.0}])


class Shows:
    @hookimpl
    def pre_steps_log(self):
        return {"answer": 42.0, "log_pbar": True}


def test_the_progress_bar_shows_the_run_and_the_metrics_that_ask_for_it(build, capsys):
    run = build([Shows()], hook=[{"use": "progress-bar"}], evaluator={"use": "episodes", "episodes": 1, "every": 32})
    run.trainer.train()
    last = capsys.readouterr().err.split("\r")[-1]
    for part in ("tiny: 100%", "96/96", "answer 42", "return ", "length ", "lr 3.00e-04", "evaluation ", "frames/s"):
        assert part in last


def test_the_progress_bar_of_a_stopped_run_does_not_pretend(build, capsys):
    class Stop:
        @hookimpl
        def post_steps(self, trainer):
            trainer.request_stop("enough")

    build([Stop()], hook=[{"use": "progress-bar"}]).trainer.train()
    assert "tiny:  33%" in capsys.readouterr().err.split("\r")[-1]
