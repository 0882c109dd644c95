"""Which policy acts for which agent, and what is refused."""

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from rlcore_plugin_pettingzoo.spaces import AgentSpaces
from rlcore_plugin_policies.shares import are_alike, assigned

from rlcore.envs.checks import check_one_policy
from rlcore.errors import ConfigError
from rlcore.types import AgentSpec, EnvSpec

NARROW, WIDE = Box(-1, 1, (2,), np.float32), Box(-2, 1, (3, 2), np.float32)


def spec_of(*agents, games=1):
    spaces = AgentSpaces(agents, "chase")
    return EnvSpec("chase", spaces.observation_space, spaces.action_space, games * len(agents), agents=agents)


def agent(name, observation=NARROW, action=None):
    return AgentSpec(name, observation, action or Discrete(3))


CHASE = (agent("hunter_0"), agent("hunter_1"), agent("prey_0", WIDE, Discrete(5)))


def test_each_policy_has_the_envs_of_its_agents_in_every_game():
    spec = spec_of(*CHASE, games=2)
    shares = assigned(spec, {"prey": ["prey_*"], "hunters": ["hunter_0", "hunter_1"]})
    assert shares.policies == ("hunters", "hunters", "prey")
    assert shares.names == ("hunters", "prey")
    assert shares.envs("hunters", 6) == [0, 1, 3, 4]
    assert shares.rows("prey", 6, torch.device("cpu")).tolist() == [2, 5]
    assert shares.envs("prey", 2) == []
    own = shares.spec("prey", spec)
    assert (own.num_envs, own.agents) == (2, ())
    assert (own.observation_space, own.action_space) == (WIDE, Discrete(5))


def test_agents_that_are_alike_see_what_the_transforms_leave():
    spec = spec_of(agent("a"), agent("b"))
    shares = assigned(spec, {"one": ["a"], "two": ["b"]})
    changed = Box(-5, 5, (7,), np.float32)
    own = shares.spec("one", EnvSpec("chase", changed, spec.action_space, 2, agents=spec.agents))
    assert are_alike(spec.agents)
    assert own.observation_space == changed


@pytest.mark.parametrize(
    ("patterns", "told"),
    [
        ({"hunters": ["hunter_*"]}, r"\[model.NAME\] agents: no policy acts for 'prey_0'"),
        ({"all": ["hunter_*", "prey_*"]}, r"\[model.all\] agents: the observations of 'prey_0' are Box.*two policies"),
        (
            {"hunters": ["*"], "prey": ["prey_0"]},
            r"\[model.hunters\] and \[model.prey\] agents: both name 'prey_0'",
        ),
        (
            {"hunters": ["hunter_*"], "prey": ["prey_*", "pray_1"]},
            r"\[model.prey\] agents: 'pray_1' is no agent of env 'chase'.*there are hunter_0, hunter_1, prey_0",
        ),
    ],
)
def test_agents_without_a_policy_or_with_two_and_policies_without_agents_are_refused(patterns, told):
    with pytest.raises(ConfigError, match=told):
        assigned(spec_of(*CHASE), patterns)


def test_one_policy_for_agents_that_differ_and_policies_for_envs_without_agents_are_refused():
    check_one_policy(spec_of(agent("a"), agent("b")))
    with pytest.raises(ConfigError, match=r"one policy acts for all agents: the observations of 'prey_0'.*model.NAME"):
        check_one_policy(spec_of(*CHASE))
    with pytest.raises(ConfigError, match=r"\[model.x\]: env 'pole' has no agents"):
        assigned(EnvSpec("pole", NARROW, Discrete(2), 4), {"x": ["*"]})


def test_spaces_hold_what_every_agent_sees_and_does():
    agents = (agent("a", NARROW, Discrete(3, start=-1)), agent("b", WIDE, Box(-3, 2, (2,), np.float32)))
    spaces = AgentSpaces(agents, "chase")
    assert spaces.observation_space.shape == (6,)
    assert spaces.action_space == Box(-3, 2, (2,), np.float32)
    row = np.zeros(6, np.float32)
    seen = np.arange(6, dtype=np.float32).reshape(3, 2) / 6
    spaces.write(row, 1, seen)
    assert np.array_equal(row, seen.reshape(-1))
    spaces.write(row := np.full(6, 9, np.float32), 0, [0.5, 1])
    assert row.tolist() == [0.5, 1, 9, 9, 9, 9]
    action = spaces.action(np.array([-1.0, 0.0], np.float32), 0)
    assert action.dtype == np.int64
    assert agents[0].action_space.contains(np.int64(action))
    assert spaces.action(np.array([1.5, -3.0], np.float32), 1).tolist() == [1.5, -3.0]
    several = AgentSpaces((agent("a", action=Discrete(2)), agent("b", action=Discrete(2, start=3))), "chase")
    assert several.action_space == Discrete(5)
    assert several.action(np.int64(4), 1) == 4
