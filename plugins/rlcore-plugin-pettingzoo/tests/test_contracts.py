"""The contracts of the plugin and of its env, with agents that leave a game before the others."""

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from rlcore_plugin_datasets.dataset import Dataset
from rlcore_plugin_testing import make_run
from rlcore_plugin_testing.contracts import EnvContract, PluginContract

from rlcore.errors import ConfigError, EnvError
from rlcore.types import Context


class Leaving:
    """Each agent walks on a line, and is out when it is far from where it began; a game is cut off at 12 steps."""

    def __init__(self, agents=3, late=False):
        self.possible_agents = [f"walker_{number}" for number in range(agents)]
        self.agents = []
        self._late = late

    def observation_space(self, agent):
        return Box(-9, 9, (2,), np.float32)

    def action_space(self, agent):
        return Discrete(2)

    def reset(self, seed=None, options=None):
        if seed is not None:
            self._random = np.random.default_rng(seed)
        self.agents = self.possible_agents[1:] if self._late else list(self.possible_agents)
        self._places = {agent: self._random.normal() for agent in self.agents}
        self._steps = 0
        return self._seen(self.agents), {agent: {"place": self._places[agent]} for agent in self.agents}

    def step(self, actions):
        assert set(actions) == set(self.agents), "actions of those who play on, and of no other"
        self._steps += 1
        acting, cut = self.agents, self._steps == 12
        for agent in acting:
            self._places[agent] += (2 * int(actions[agent]) - 1) * self._random.uniform(0.5, 1.5)
        out = {agent: abs(self._places[agent]) > 3 for agent in acting}
        self.agents = [agent for agent in acting if not out[agent] and not cut]
        infos = {agent: {"place": self._places[agent]} for agent in acting}
        return self._seen(acting), dict.fromkeys(acting, 1.0), out, dict.fromkeys(acting, cut), infos

    def _seen(self, agents):
        return {agent: np.array([self._places[agent], self._steps / 12], np.float32).clip(-9, 9) for agent in agents}

    def close(self):
        pass


class TestPlugin(PluginContract):
    plugin = "pettingzoo"


class TestPettingZoo(EnvContract):
    use = "pettingzoo"
    config = {"id": f"{__name__}:Leaving", "num_envs": 2}
    seeds_each_env = False

    def settings(self, **changes):
        """Games of as many agents as the suite asks for envs."""
        return super().settings(**{"kwargs": {"agents": changes.get("num_envs", 2)}, **changes})


def env_of(**keys):
    return TestPettingZoo().make(Context.alone("test"), **keys)


def test_an_agent_that_is_out_ends_in_each_step_until_its_game_begins_again():
    env = env_of(num_envs=6, kwargs={"agents": 3})
    env.reset(seed=1)
    actions = np.random.default_rng(0)
    over = np.zeros(6, dtype=bool)
    waited = begun = 0
    for _ in range(200):
        step = env.step(actions.integers(0, 2, 6))
        done = step.terminated | step.truncated
        assert not step.reward[over].any()
        assert step.reward[~over].all()
        for game in (slice(0, 3), slice(3, 6)):
            if over[game].all():
                assert not done[game].any()
                begun += 1
            else:
                assert done[game][over[game]].all()
                waited += int(over[game].sum())
        assert set(step.infos) == set(np.flatnonzero(done & ~over).tolist())
        over = done.copy()
    assert waited > 20
    assert begun > 10


def test_steps_of_agents_that_wait_do_not_count():
    """Episodes, the mask and rewards agree, in batches that are counted by Python and by NumPy."""
    for frames in (36, 600):
        sections = {
            "env": {"use": "pettingzoo", "id": f"{__name__}:Leaving", "num_envs": 6},
            "model": {"use": "mlp", "hidden": [8]},
            "collector": {"frames_per_batch": frames},
        }
        collector = make_run(sections=sections).trainer.collector
        steps = ended = counted = 0
        for _ in range(1200 // frames):
            batch = collector.collect()
            episodes = collector.episodes()
            assert all(1 <= episode.length == episode.return_ <= 12 for episode in episodes)
            ended += len(episodes)
            mask = batch["collector", "mask"].squeeze(-1)
            counted += int((batch["next", "done"].squeeze(-1) & mask).sum())
            assert torch.equal(batch["next", "reward"].squeeze(-1), mask.float())
            steps += int(mask.sum())
        assert ended == counted > 50
        assert 0.3 * 1200 < steps < 0.95 * 1200


def test_each_agent_tells_of_its_own_infos_until_it_is_out():
    env, told = env_of(num_envs=6, kwargs={"agents": 3}), []
    env.tell_infos(lambda index, infos, first: told.append((index, infos["place"], first)))
    actions, over = np.random.default_rng(0), np.zeros(6, dtype=bool)
    seen = env.reset(seed=1)
    waited = 0
    for _ in range(60):
        assert all(np.float32(place).clip(-9, 9) == seen[index, 0] for index, place, _ in told)
        told.clear()
        step = env.step(actions.integers(0, 2, 6))
        seen, before, over = step.observation, over, step.terminated | step.truncated
        waits = before & over
        assert [(index, first) for index, _, first in told] == [(i, before[i]) for i in range(6) if not waits[i]]
        waited += int(waits.sum())
    assert waited > 20


def test_infos_of_agents_that_nobody_asked_for_are_not_told():
    suite, told = TestPettingZoo(), set()
    env = suite.make(suite.bench(), num_envs=4, kwargs={"agents": 3})
    env.tell_infos(lambda index, infos, first: told.add(index))
    env.reset(seed=0)
    for _ in range(20):
        env.step(np.ones(4, int))
    assert told == set(range(4))


def test_infos_of_each_agent_are_recorded_with_its_own_steps(tmp_path):
    sections = {
        "env": {"use": "pettingzoo", "id": f"{__name__}:Leaving", "num_envs": 6, "kwargs": {"agents": 3}},
        "model": {"use": "mlp", "hidden": [8]},
        "collector": {"frames_per_batch": 60},
        "hook": [{"use": "datasets:record", "infos": True}],
    }
    run = make_run("run.total_frames=600", sections=sections, folder=tmp_path)
    run.trainer.train()
    episodes = list(Dataset(run.folder / "recorded").episodes(infos=True))
    assert len(episodes) > 50
    for episode in episodes:
        assert np.array_equal(np.float32(episode.infos["place"]).clip(-9, 9), episode.observations[:, 0])


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"num_envs": 4, "kwargs": {"agents": 3}}, "multiple of it, as 3 or 6"),
        ({"num_envs": 2, "kwargs": {"agents": 3}}, "multiple of it, as 3 or 6"),
        ({"kwargs": {"agnets": 3}}, "cannot be made: TypeError"),
        ({"id": "no_such_game"}, "cannot be imported: No module named 'no_such_game'"),
        ({"id": "json"}, "has no parallel_env"),
        ({"id": "gymnasium.spaces:Discrete", "kwargs": {"n": 2}}, "has not PettingZoo's parallel interface"),
    ],
)
def test_games_that_cannot_be_played_are_refused(keys, told):
    with pytest.raises(ConfigError, match=told):
        env_of(**keys)


def test_agents_that_come_later_are_refused():
    env = env_of(num_envs=3, kwargs={"agents": 3, "late": True})
    with pytest.raises(EnvError, match="'walker_0' is not there when an episode begins"):
        env.reset(seed=0)


def test_elsewhere_than_in_training_some_agents_of_a_game_may_act_at_random(caplog):
    suite = TestPettingZoo()
    env = suite.make(suite.bench(), num_envs=4, kwargs={"agents": 3})
    assert "2 more of the last game act at random" in caplog.text
    assert env.reset(seed=0).shape == (4, 2)
    assert env.step(np.ones(4, int)).reward.tolist() == [1.0] * 4


def test_a_real_game_is_played():
    pytest.importorskip("mpe2")
    env = env_of(id="mpe2.simple_spread_v3", num_envs=6, kwargs={"max_cycles": 5, "N": 3})
    assert env.spec.observation_space.shape == (18,)
    first = np.array(env.reset(seed=3))
    steps = [env.step(np.full(6, 1)) for _ in range(5)]
    assert steps[-1].truncated.all()
    assert not any(step.terminated.any() for step in steps)
    assert env.step(np.full(6, 1)).reward.tolist() == [0.0] * 6
    assert np.array_equal(first, env.reset(seed=3))
    env.close()
