"""Statistics of several ranks are those of all observations and rewards, with the same bits on each."""

from dataclasses import replace

import gymnasium
import numpy as np
import torch
from rlcore_plugin_testing.ranks import in_ranks
from rlcore_plugin_transforms.moments import Moments
from rlcore_plugin_transforms.observation_norm import RunningObservationNorm
from rlcore_plugin_transforms.reward_norm import RewardNorm
from tensordict import TensorDict

from rlcore.types import EnvSpec
from rlcore.types.context import Context

SPACE = gymnasium.spaces.Box(-np.inf, np.inf, (3,))
SPEC = EnvSpec("toy", SPACE, gymnasium.spaces.Discrete(2), 2)


def context(group):
    return replace(Context.alone("run"), group=group, parts={"env_spec": SPEC})


def observations(rank):
    return np.random.default_rng(rank).normal(rank, 1 + rank, (4, 5, 2, 3))  # iteration, step, env


def same_bits(states):
    return [{name: np.asarray(value).tobytes() for name, value in state.items()} for state in states]


def test_observations_of_all_ranks_are_learnt_from():
    def run(group):
        transform = RunningObservationNorm(RunningObservationNorm.Config(), context(group))
        transform.observation_space(SPACE)
        for iteration in observations(group.rank):
            for observation in iteration:
                transform.step(observation, np.zeros(2, bool))
            transform.batch(TensorDict({}, [2, 5]))
        return transform.state_dict()

    states = in_ranks(2, run)
    one = Moments()
    one.add(np.concatenate([observations(rank).reshape(-1, 3) for rank in range(2)]))
    assert same_bits(states)[0] == same_bits(states)[1]
    assert states[0]["count"] == one.count
    for name, value in one.state_dict().items():
        np.testing.assert_allclose(states[0][name], value, rtol=1e-12)


def test_between_two_batches_a_rank_learns_from_its_own():
    def run(group):
        transform = RunningObservationNorm(RunningObservationNorm.Config(clip=0), context(group))
        transform.observation_space(SPACE)
        for observation in observations(group.rank)[0]:
            seen = transform.step(observation, np.zeros(2, bool))
        return seen

    for rank, seen in enumerate(in_ranks(2, run)):
        alone = Moments()
        for observation in observations(rank)[0]:
            alone.add(observation)
        np.testing.assert_allclose(seen, (observation - alone.mean) / alone.deviation(1e-8), rtol=1e-5)


def test_it_goes_on_after_a_resume_as_without():
    def run(group):
        first = RunningObservationNorm(RunningObservationNorm.Config(), context(group))
        first.observation_space(SPACE)
        iterations = observations(group.rank)
        for observation in iterations[0]:
            first.step(observation, np.zeros(2, bool))
        first.batch(TensorDict({}, [2, 5]))
        second = RunningObservationNorm(RunningObservationNorm.Config(), context(group))
        second.observation_space(SPACE)
        second.load_state_dict(first.state_dict())
        for transform in (first, second):
            for observation in iterations[1]:
                transform.step(observation, np.zeros(2, bool))
            transform.batch(TensorDict({}, [2, 5]))
        return [first.state_dict(), second.state_dict()]

    for first, second in in_ranks(2, run):
        assert same_bits([first]) == same_bits([second])


def batch_of(rewards):
    flags = torch.zeros_like(rewards, dtype=torch.bool)
    following = {"reward": rewards, "done": flags, "terminated": flags, "truncated": flags}
    return TensorDict({"next": TensorDict(following, rewards.shape[:2])}, rewards.shape[:2])


def test_rewards_of_all_ranks_are_divided_by_one_deviation():
    def run(group):
        transform = RewardNorm(RewardNorm.Config(clip=0), context(group))
        for number in range(3):
            rewards = torch.full((2, 5, 1), 1.0 + group.rank + number)
            divided = transform.batch(batch_of(rewards))["next", "reward"] / rewards
        return divided.unique().tolist(), transform.state_dict()["moments"]

    (one, first), (other, second) = in_ranks(2, run)
    assert one == other
    assert len(one) == 1
    assert same_bits([first]) == same_bits([second])
    assert first["count"] == 2 * 3 * 10
