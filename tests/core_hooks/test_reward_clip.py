"""The hook `reward-clip`."""

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
