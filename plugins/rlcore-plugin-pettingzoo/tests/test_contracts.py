"""The contracts of the plugin and of its env, with agents that leave a game before the others."""

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete
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


class Absent(Leaving):
    """The same, but in two episodes of three an agent is absent: the first, or the last two."""

    def reset(self, seed=None, options=None):
        super().reset(seed, options)
        self.agents = [self.possible_agents[1:], self.possible_agents[:-2], self.possible_agents][seed % 3]
        return self._seen(self.agents), {agent: {"place": self._places[agent]} for agent in self.agents}


class Masked(Leaving):
    """The same, but an agent steps right only where its mask allows it: from the left half.

    Args:
        agents: how many.
        place: of the mask: in the infos, or in the observation.
    """

    def __init__(self, agents=3, place="infos"):
        super().__init__(agents)
        self._place = place

    def observation_space(self, agent):
        space = super().observation_space(agent)
        return space if self._place == "infos" else Dict(observation=space, action_mask=Box(0, 1, (2,), np.int8))

    def reset(self, seed=None, options=None):
        seen, infos = super().reset(seed, options)
        return self._with_masks(seen, infos, {})

    def step(self, actions):
        for agent, action in actions.items():
            assert self._mask(agent)[action], "an action that the mask forbids"
        seen, rewards, out, cut, infos = super().step(actions)
        seen, infos = self._with_masks(seen, infos, out)
        return seen, rewards, out, cut, infos

    def _mask(self, agent):
        return np.array([1, self._places[agent] < 0], np.int8)

    def _with_masks(self, seen, infos, out):
        masks = {agent: self._mask(agent) * (not out.get(agent)) for agent in seen}  # nothing is allowed after the end
        if self._place == "infos":
            return seen, {agent: {**infos[agent], "action_mask": masks[agent]} for agent in seen}
        return {agent: {"observation": seen[agent], "action_mask": masks[agent]} for agent in seen}, infos


def sections_of(game, **env):
    return {
        "env": {"use": "pettingzoo", "id": f"{__name__}:{game}", "num_envs": 6, "kwargs": {"agents": 3}, **env},
        "model": {"use": "mlp", "hidden": [8]},
        "collector": {"frames_per_batch": 60},
        "evaluator": {"use": "episodes", "episodes": 6},
    }


def test_agents_that_are_in_no_episode_are_refused_by_name():
    env = env_of(num_envs=3, kwargs={"agents": 3, "late": True})
    with pytest.raises(
        EnvError, match="not all agents are there in any of 100 episodes; missing in the last of them: 'walker_0'"
    ):
        env.reset(seed=0)


def test_an_agent_that_is_not_in_an_episode_waits_from_its_beginning(caplog):
    env = env_of(id=f"{__name__}:Absent", num_envs=6, kwargs={"agents": 3})
    env.reset(seed=1)
    assert "is not in every episode, and waits while others play" in caplog.text
    actions, over = np.random.default_rng(0), np.zeros(6, dtype=bool)
    absent = 0
    for _ in range(300):
        step = env.step(actions.integers(0, 2, 6))
        done = step.terminated | step.truncated
        assert (step.reward[~over] == 1).all()
        assert not step.reward[over].any()
        for game in (slice(0, 3), slice(3, 6)):
            if over[game].all() and done[game].any():  # an episode begins without some
                absent += 1
                assert not step.observation[game][done[game]].any()
                assert not done[game].all()
        over = done.copy()
    assert absent > 20


def test_steps_of_agents_that_are_absent_do_not_count(tmp_path):
    run = make_run("run.total_frames=1200", sections=sections_of("Absent"), folder=tmp_path)
    collector, steps, played = run.trainer.collector, 0, []
    for _ in range(20):
        batch = collector.collect()
        played += collector.episodes()
        mask = batch["collector", "mask"].squeeze(-1)
        assert torch.equal(batch["next", "reward"].squeeze(-1), mask.float())
        steps += int(mask.sum())
    assert all(1 <= episode.length == episode.return_ <= 12 for episode in played)
    assert steps - 6 * 12 <= sum(episode.length for episode in played) <= steps
    result = run.trainer.evaluate()
    assert all(length == value > 0 for length, value in zip(result.lengths, result.returns, strict=True))


def test_a_running_episode_without_an_agent_is_saved_and_goes_on():
    first, second = (env_of(id=f"{__name__}:Absent", num_envs=3, kwargs={"agents": 3}) for _ in range(2))
    first.reset(seed=1)
    actions = np.random.default_rng(0).integers(0, 2, (80, 3))
    for number, action in enumerate(actions[:60]):
        first.step(action)
        if number % 4 == 0:
            second.load_state_dict(first.state_dict())
            assert second.state_dict()["games"][0]["episode"] == first.state_dict()["games"][0]["episode"]
    second.load_state_dict(first.state_dict())
    for action in actions[60:]:
        here, there = first.step(action), second.step(action)
        assert all(np.array_equal(one, other) for one, other in zip(here[:4], there[:4], strict=True))


def test_an_agent_that_comes_in_the_middle_of_an_episode_is_refused_by_name():
    env = env_of(id=f"{__name__}:Coming", num_envs=3, kwargs={"agents": 3})
    env.reset(seed=0)
    with pytest.raises(EnvError, match="'late' comes in the middle of an episode"):
        env.step(np.ones(3, int))


class Coming(Leaving):
    """The same, with one more agent after the first step."""

    def step(self, actions):
        result = super().step(actions)
        self.agents = [*self.agents, "late"]
        return result


class Flying(Leaving):
    """The same, with actions that no mask can be of."""

    def action_space(self, agent):
        return Box(-1, 1, (2,), np.float32)


@pytest.mark.parametrize("place", ["infos", "observation"])
def test_masks_are_kept_to(place, tmp_path):
    """The game fails where an action was forbidden: in training, in evaluations, and by agents that nobody trains."""
    key = {"mask_key": "action_mask"} if place == "infos" else {}
    sections = sections_of("Masked", **key)
    sections["env"]["kwargs"] = {"agents": 3, "place": place}
    sections["evaluator"]["episodes"] = 4
    run = make_run("run.total_frames=600", sections=sections, folder=tmp_path)
    assert run.trainer.parts.model.policy is not None
    run.trainer.train()
    assert len(run.trainer.last_evaluation.returns) == 4


def test_masks_that_nothing_reads_are_refused_before_the_first_frame(tmp_path):
    run = make_run("run.total_frames=600", sections=sections_of("Masked"), folder=tmp_path)
    with pytest.raises(
        EnvError, match=r"have an action_mask, which nothing reads; set \[env\] mask_key = 'action_mask'"
    ):
        run.trainer.train()
    assert run.trainer.progress.frames == 0


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"kwargs": {"agents": 3, "place": "observation"}, "mask_key": "action_mask"}, "the observations have a leaf"),
        ({"id": f"{__name__}:Flying", "mask_key": "action_mask"}, "masks go with Discrete"),
    ],
)
def test_masks_that_there_cannot_be_are_refused(keys, told):
    with pytest.raises(ConfigError, match=told):
        env_of(**{"id": f"{__name__}:Masked", "num_envs": 3, **keys})


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


class Writing(Leaving):
    """Scales the actions in their own arrays."""

    def action_space(self, agent):
        return Box(-1, 1, (1,), np.float32)

    def step(self, actions):
        for action in actions.values():
            action *= 0.5
        return super().step({agent: action[0] > 0 for agent, action in actions.items()})


class TestWritingIntoActions(TestPettingZoo):
    config = {"id": f"{__name__}:Writing", "num_envs": 2}
