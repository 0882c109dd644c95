"""The env is VMAS's: its episodes, their ends and its random numbers; and nobody else's numbers are disturbed."""

import random
from pathlib import Path

import numpy as np
import pytest
import torch
import vmas
from rlcore_plugin_testing import make_run
from rlcore_plugin_vmas.config import Config
from rlcore_plugin_vmas.env import make

from rlcore.errors import RlcoreError, StorageError
from rlcore.state import modules_of, through_checkpoint
from rlcore.types import Context


@pytest.fixture(autouse=True)
def own_scenarios(monkeypatch):
    """As beside a config."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def env_of(scenario, num_envs, **keys):
    return make(Config(scenario=scenario, num_envs=num_envs, **keys), Context.alone("test"))


def actions_for(env, steps, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.rand(env.spec.num_envs, 2, generator=generator) * 2 - 1 for _ in range(steps)]


@pytest.mark.parametrize(
    ("scenario", "agents", "kwargs"),
    [("balance", 3, {}), ("navigation", 2, {"n_agents": 2}), ("transport", 4, {}), ("wheel", 4, {})],
)
def test_episodes_are_those_of_vmas(scenario, agents, kwargs):
    """Up to the first end in each world, which takes nothing from the others; VMAS alone begins no next episode."""
    worlds = 6
    env = env_of(scenario, worlds * agents, max_steps=40, kwargs=kwargs)
    original = vmas.make_env(scenario, worlds, "cpu", max_steps=40, terminated_truncated=True, **kwargs)
    rows, first = env.reset_tensors(5), original.reset(seed=5)
    playing = torch.ones(worlds, dtype=torch.bool)

    def by_agent(rows):
        return rows.reshape(worlds, agents, *rows.shape[1:]).unbind(1)

    compared = 0
    for number, observed in enumerate(by_agent(rows)):
        assert torch.equal(observed, first[number])
    for action in actions_for(env, 40):
        step = env.step_tensors(action)
        observations, rewards, terminated, truncated, _ = original.step([one.clone() for one in by_agent(action)])
        for number in range(agents):
            assert torch.equal(by_agent(step.final_observation)[number][playing], observations[number][playing])
            assert torch.equal(by_agent(step.reward)[number][playing], rewards[number].reshape(-1)[playing])
            assert torch.equal(by_agent(step.terminated)[number][playing], terminated[playing])
            assert torch.equal(by_agent(step.truncated)[number][playing], (truncated & ~terminated)[playing])
        compared += int(playing.sum())
        playing &= ~(terminated | truncated)
    assert compared > worlds
    assert not playing.any()


def test_a_world_that_ends_begins_as_new_and_the_others_go_on():
    env = env_of("scenarios:Line", 16)
    row = env.reset_tensors(0)[::2]  # of the first agent of each world
    ends, lengths = torch.zeros(8), []
    for action in actions_for(env, 60):
        age, seen, left, wind = row[:, 0], row[:, 2], row[:, 3], row[:, 6]
        step = env.step_tensors(action)
        final, ended = step.final_observation[::2], step.terminated[::2]
        assert torch.equal(final[:, 0], age + 1)
        assert torch.equal(final[:, 2], seen + 1), "agents of worlds that go on were observed more than once"
        assert torch.equal(final[:, 3], left)
        assert torch.equal(final[:, 6], wind), "the wind of all worlds changed in the middle of an episode"
        assert torch.equal(ended, final[:, 0] >= left)
        row = step.observation[::2]
        assert torch.equal(row[~ended], final[~ended])
        assert not row[ended, :3].any(), "a new episode remembers the one before"
        assert torch.equal(row[:, 0], row[:, 1]), "what was one tensor is two"
        assert torch.equal(row[:, 3], row[:, 4])
        assert torch.equal(row[:, 5], final[:, 5]), "what is drawn once was drawn again"
        lengths += final[ended, 0].tolist()
        ends += ended
    assert ends.min() > 4
    assert set(lengths) == set(range(2, 9))


def test_the_first_reward_of_a_new_episode_does_not_know_the_last_one():
    """The reward of balance is by how much the package came nearer, of which the scenario keeps the last distance."""
    env = env_of("balance", 90, max_steps=100)
    observation, ended = env.reset_tensors(0), torch.zeros(90, dtype=torch.bool)
    begun = 0
    for action in actions_for(env, 80):
        step = env.step_tensors(action)
        before, after = (rows[:, 8:10].norm(dim=-1) for rows in (observation, step.final_observation))
        reward = (before - after) * 100
        fell = (step.reward - reward).abs() > 5  # by which 10 are lost
        torch.testing.assert_close(step.reward, reward - 10 * fell, rtol=1e-4, atol=1e-3)
        begun += int(ended.sum())
        observation, ended = step.observation, step.terminated
    assert begun > 12


@pytest.mark.parametrize("scenario", ["scenarios:Line", "simple", "balance", "transport", "navigation", "football"])
def test_a_resume_in_the_middle_of_episodes_is_exact(scenario):
    agents = {"scenarios:Line": 2, "simple": 1, "navigation": 4, "transport": 4}.get(scenario, 3)
    saved, other = (env_of(scenario, 3 * agents, max_steps=7) for _ in range(2))
    assert saved.inexact() is None
    plan = actions_for(saved, 30)
    saved.reset_tensors(1)
    other.reset_tensors(2)
    for action in plan[:10]:
        saved.step_tensors(action)
    state = saved.state_dict()
    expected = [saved.step_tensors(action) for action in plan[10:]]
    for action in plan[:4]:
        other.step_tensors(action)
    for loaded in (through_checkpoint(state), state, state):  # what is loaded stays as it was
        other.load_state_dict(loaded)
        for step, action in zip(expected, plan[10:], strict=True):
            assert all(torch.equal(*pair) for pair in zip(other.step_tensors(action), step, strict=True))


@pytest.mark.parametrize(
    ("scenario", "reason"),
    [
        ("scenarios:Forgetful", "does not go on as before: step 1"),
        ("scenarios:Hiding", "holds scenario.numbers, a range_"),
    ],
)
def test_a_scenario_that_cannot_be_saved_is_told(scenario, reason):
    assert reason in env_of(scenario, 4).inexact()


def test_a_resume_compares_the_simulator():
    assert {"vmas", "vmas.simulator.core", "rlcore_plugin_vmas.env"} <= set(modules_of(env_of("simple", 1)))


def test_the_state_of_other_envs_is_refused():
    saved = env_of("simple", 2)
    saved.reset_tensors(0)
    with pytest.raises(StorageError, match="num_envs"):
        env_of("simple", 3).load_state_dict(saved.state_dict())
    with pytest.raises(StorageError, match="of a scenario of VMAS, and this one has no such thing"):
        env_of("simple_spread", 6).load_state_dict({**saved.state_dict(), "values": [["scenario.other", "x", 1]]})


def global_numbers():
    return torch.rand(3).tolist(), np.random.rand(3).tolist(), random.random()


def test_nobody_elses_random_numbers_are_disturbed():
    """Those of the run, and those of other envs of VMAS."""

    def played(*others):
        torch.manual_seed(3)
        np.random.seed(3)
        random.seed(3)
        env = env_of("scenarios:Line", 4)
        steps = [env.reset_tensors(0)]
        for action in actions_for(env, 20):
            for other in others:
                other.step_tensors(action)
            steps += env.step_tensors(action)
        return steps, global_numbers()

    other = env_of("scenarios:Line", 4)
    other.reset_tensors(1)
    (steps, numbers), (beside, numbers_beside) = played(), played(other)
    assert numbers == numbers_beside
    torch.manual_seed(3)
    np.random.seed(3)
    random.seed(3)
    with pytest.raises(RlcoreError):
        env_of("balance", 1, kwargs={"n_agents": 1})
    assert numbers == global_numbers()
    assert all(torch.equal(*pair) for pair in zip(steps, beside, strict=True))


def test_steps_with_and_without_gradients_may_follow_each_other():
    """An evaluation resets outside of the mode without gradients in which it steps."""
    env = env_of("scenarios:Line", 4)
    for _ in range(2):
        env.reset_tensors(0)
        with torch.inference_mode():
            for action in actions_for(env, 9):
                env.step_tensors(action)


@pytest.mark.parametrize("collector", ["device", "local"])
@pytest.mark.parametrize("several", [False, True])
def test_a_run_counts_agents(collector, several):
    model = {"use": "mlp", "hidden": [8]}
    policies = {"one": {**model, "agents": ["agent_0"]}, "two": {**model, "agents": ["agent_1"]}}
    sections = {
        "env": {"use": "vmas", "scenario": "scenarios:Line", "num_envs": 4, "max_steps": 9},
        "model": policies if several else model,
        "loss": {"use": "ppo"},
        "estimator": {"use": "gae"},
        "collector": {"use": collector, "frames_per_batch": 40},
        "evaluator": {"use": "episodes", "episodes": 4},
        "run": {"name": "toy", "seed": 1, "total_frames": 120, "device": "cpu"},
    }
    trainer = make_run(sections=sections).trainer
    trainer.train()
    assert trainer.progress.frames == 120
    assert trainer.progress.episodes > 8


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"scenario": "balanse"}, "VMAS has no such scenario.*did you mean 'balance'.*transport.*module:Class"),
        ({"scenario": "scenarios:NoScenario"}, "makes a NoScenario; derive it from"),
        ({"scenario": "scenarios:None_"}, "scenarios has no 'None_'"),
        ({"num_envs": 4}, "balance has 3 agents, and each is an env, so num_envs is a multiple of it, as 3 or 6"),
        ({"kwargs": {"n_agent": 3}}, "cannot be made by VMAS with kwargs.*n_agent.*not used"),
        ({"kwargs": {"n_agents": 1}}, "cannot be made by VMAS"),
        ({"kwargs": {"device": "cuda"}}, "device is no argument of a scenario; the device is that of the run"),
        ({"kwargs": {"dict_spaces": True, "seed": 1}}, "dict_spaces, seed is no argument of a scenario"),
        ({"scenario": "simple_tag"}, "the observations of 'agent_0' are .*the agents of a scenario must be alike"),
        ({"scenario": "scenarios:Line", "kwargs": {"uneven": True}}, "the observations of 'agent_1' are"),
        ({"scenario": "football", "kwargs": {"dict_obs": True}}, "an observation is .* it must be one array"),
        ({"kwargs": {"n_agents": 2}, "num_envs": 2, "max_steps": 0}, "max_steps"),
    ],
)
def test_what_cannot_be_is_told_before_the_first_frame(keys, expected):
    with pytest.raises(RlcoreError, match=expected):
        make_run(sections={"env": {"use": "vmas", "scenario": "balance", "num_envs": 3, **keys}})


def test_a_compiled_step_is_refused():
    sections = {
        "env": {"use": "vmas", "scenario": "simple", "num_envs": 4},
        "model": {"use": "mlp"},
        "loss": {"use": "ppo"},
        "estimator": {"use": "gae"},
        "collector": {"use": "device", "compile": True, "frames_per_batch": 16},
    }
    with pytest.raises(RlcoreError, match="steps by itself, out of the sight of the compiler"):
        make_run(sections=sections)


def test_agents_that_are_left_over_act_at_random(caplog):
    context = Context.alone("test")
    context.built["env"] = None  # that of the run; this one is of an evaluation
    envs = [make(Config(scenario="navigation", num_envs=6, max_steps=9), context) for _ in range(2)]
    assert "2 more of the last world act at random" in caplog.text
    rows = [env.reset_tensors(1) for env in envs]
    assert rows[0].shape[0] == 6
    for action in actions_for(envs[0], 12):
        steps = [env.step_tensors(action) for env in envs]
        assert all(len(values) == 6 for values in steps[0])
        assert all(torch.equal(*pair) for pair in zip(*steps, strict=True))
