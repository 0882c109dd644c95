"""The agent: single observations and batches, episodes that begin at different times, and what it refuses."""

from __future__ import annotations

import dataclasses

import gymnasium
import numpy as np
import pytest
import torch

import rlcore
from rlcore.envs import Packed, PassThrough

SPEC = rlcore.EnvSpec("line-v0", gymnasium.spaces.Box(-9, 9, (1,)), gymnasium.spaces.Box(-99, 99, (1,)), 1)


class Policy:
    """Acts by the sum of what it sees, with the noise in front."""

    def refresh(self):
        pass

    def mode(self, observation):
        return observation.sum(-1, keepdim=True)

    def draw(self, steps, num_envs, generator):
        return torch.rand((steps, num_envs, 1), generator=generator)

    def act(self, observation, noise):
        return self.mode(observation) + noise, noise


class Total(PassThrough):
    """Shows the sum of the observations of the episode; acts double."""

    def __init__(self, total=None):
        self.total = total

    def step(self, observation, first):
        old = 0 if self.total is None else self.total
        self.total = np.where(first[:, None], 0, old) + observation
        return self.total

    def action(self, action):
        return action * 2

    def frozen(self):
        return Total()

    def forget_episodes(self):
        self.total = None


def test_single_observations_and_batches():
    agent = rlcore.Agent(SPEC, [], Policy())
    assert not agent.remembers
    assert agent.act([3]) == np.float32([3])
    assert agent.act([[1], [2]]).tolist() == [[1], [2]]
    assert agent.act(np.float64([1.5])).dtype == np.float32


def test_episodes_that_begin_are_told():
    agent = rlcore.Agent(SPEC, [Total(total=5)], Policy())
    assert agent.remembers
    assert agent.act([[1], [2]]).tolist() == [[2], [4]]
    assert agent.act([[1], [2]]).tolist() == [[4], [8]]
    agent.reset([False, True])
    assert agent.act([[1], [2]]).tolist() == [[6], [4]]
    with pytest.raises(rlcore.ConfigError, match="1 observations after 2"):
        agent.act([1])
    with pytest.raises(rlcore.ConfigError, match="each of the 2 envs"):
        agent.reset([True])
    agent.reset()
    assert agent.act([1]).tolist() == [2]


def test_samples_follow_from_the_seed():
    one, same, other = (rlcore.Agent(SPEC, [], Policy(), seed=seed) for seed in (1, 1, 2))
    actions = [[agent.act([0], deterministic=False).item() for _ in range(3)] for agent in (one, same, other)]
    assert actions[0] == actions[1] != actions[2]
    assert len(set(actions[0])) == 3


@pytest.mark.parametrize(
    ("observation", "problem"),
    [
        ([1, 2], "gives \\[1\\]"),
        (3.0, "gives \\[1\\]"),
        (np.zeros((0, 1)), "gives \\[1\\]"),
        (["a"], "expected numbers"),
        ([float("nan")], "not finite"),
        ((np.zeros(1), {}), "env.reset\\(\\) and env.step\\(\\) return more"),
    ],
)
def test_observations_of_another_form_are_refused(observation, problem):
    with pytest.raises(rlcore.ConfigError, match=problem):
        rlcore.Agent(SPEC, [], Policy()).act(observation)


def test_an_array_in_the_place_of_a_dict_is_refused_by_what_the_env_gives():
    leaves = {"place": gymnasium.spaces.Box(-9, 9, (3,)), "speed": gymnasium.spaces.Box(-9, 9, (2,))}
    spec = dataclasses.replace(SPEC, observation_space=Packed(leaves))
    with pytest.raises(rlcore.ConfigError, match=r"shape \[5\]; env 'line-v0' gives Dict\('place': Box.*: pass one"):
        rlcore.Agent(spec, [], Policy()).act(np.zeros(5))


def test_an_action_outside_of_the_space_is_refused():
    with pytest.raises(rlcore.PluginError, match="outside of the action space"):
        rlcore.Agent(SPEC, [], Policy()).act([1000])


class Remembering(Policy):
    """Acts by the sum of what it saw of the episode."""

    def initial_state(self, num_envs):
        return torch.zeros(num_envs, 1)

    def mode(self, observation, state, first):
        state = torch.where(first[:, None], 0, state) + observation
        return state, state

    def act(self, observation, noise, state, first):
        action, state = self.mode(observation, state, first)
        return action + noise, noise, state


@pytest.mark.parametrize("deterministic", [True, False])
def test_the_state_of_a_policy_goes_from_call_to_call_until_its_episode_ends(deterministic):
    agent = rlcore.Agent(SPEC, [], Remembering())
    assert agent.remembers

    def act(*values):
        return [int(row[0]) for row in agent.act(np.array(values, np.float32)[:, None], deterministic)]

    assert [act(1, 2), act(1, 2), act(0, 0)] == [[1, 2], [2, 4], [2, 4]]
    agent.reset(done=np.array([False, True]))
    assert [act(1, 1), act(1, 1)] == [[3, 1], [4, 2]]
    with pytest.raises(rlcore.ConfigError, match="remembers earlier ones"):
        act(1, 1, 1)
    agent.reset()
    assert act(1, 1, 1) == [1, 1, 1]
