"""The state of envs: exact where it is said to be, found out where it is not, and taken without touching anything."""

import os
import random
from importlib.util import find_spec

import gymnasium
import numpy as np
import pytest
import torch
from rlcore_plugin_gymnasium.config import Config
from rlcore_plugin_gymnasium.env import make
from rlcore_plugin_testing import check_resumed, difference, make_run, through_checkpoint

from rlcore.errors import EnvError
from rlcore.types import Context

needs_mujoco = pytest.mark.skipif(find_spec("mujoco") is None, reason="MuJoCo is not installed")


class Walk(gymnasium.Env):
    """A random walk; subclasses spoil its determinism in one way each."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float64)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.start()
        return np.array([self.place]), {}

    def step(self, action):
        self.place += self.noise() + action
        return np.array([self.place]), float(self.place), bool(self.place > 15), False, {}

    def start(self):
        return self.np_random.normal()

    def noise(self):
        return self.np_random.normal()


class OwnGenerator(Walk):
    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self.own = np.random.default_rng(seed)
        return super().reset(seed=seed)

    def start(self):
        return self.own.normal()

    noise = start


class Hardware(Walk):
    def noise(self):
        return os.urandom(1)[0] / 255


class GlobalGenerator(Walk):
    def noise(self):
        return np.random.normal() + random.random()


class Curriculum(Walk):
    """Remembers how many episodes there were."""

    episodes = 0

    def start(self):
        self.episodes += 1
        return self.np_random.normal() + self.episodes


class Smoothed(gymnasium.ObservationWrapper):
    """Has a memory of its own that outlives episodes."""

    memory = 0.0

    def observation(self, observation):
        self.memory = 0.9 * self.memory + observation[0]
        return np.array([self.memory])


class SavedSmoothed(Smoothed):
    def state_dict(self):
        return {"memory": float(self.memory)}

    def load_state_dict(self, state):
        self.memory = state["memory"]


@pytest.fixture(autouse=True, scope="module")
def _registered():
    before = dict(gymnasium.registry)
    for kind in (Walk, OwnGenerator, Hardware, GlobalGenerator, Curriculum):
        gymnasium.register(f"state/{kind.__name__}-v0", kind)
    for wrapper in (gymnasium.wrappers.NormalizeObservation, Smoothed, SavedSmoothed):
        gymnasium.register(f"state/{wrapper.__name__}-v0", lambda wrapper=wrapper: wrapper(Walk()))
    yield
    gymnasium.registry.clear()
    gymnasium.registry.update(before)


def env_of(id_, **config):
    return make(Config(id=id_, **config), Context.alone("tests"))


def steps(env, count, seed):
    """Return everything that `count` steps with random actions give; bounded actions, by a generator of their own."""
    generator = np.random.default_rng(seed)
    seen = []
    for _ in range(count):
        space = env.spec.action_space
        if isinstance(space, gymnasium.spaces.Discrete):
            action = generator.integers(space.n, size=env.spec.num_envs)
        else:
            action = generator.uniform(-0.3, 0.3, (env.spec.num_envs, *space.shape)).astype(space.dtype)
        step = env.step(action)
        finals = {str(index): np.array(last) for index, last in step.final_observation.items()}
        seen.append([np.array(part) for part in step[:4]] + [finals])
    return seen


EXACT = [
    {"id_": "CartPole-v1"},
    {"id_": "CartPole-v1", "num_envs": 3, "frame_skip": 2},
    {"id_": "CartPole-v1", "num_envs": 4, "vectorization": "native"},
    {"id_": "Pendulum-v1", "num_envs": 2},
    {"id_": "Acrobot-v1"},
    {"id_": "MountainCar-v0"},
    *(
        pytest.param({"id_": f"{name}-v5"}, marks=needs_mujoco)
        for name in ("InvertedDoublePendulum", "HalfCheetah", "Hopper", "Ant", "Humanoid")
    ),
]


@pytest.mark.parametrize("config", EXACT, ids=str)
def test_an_env_goes_on_to_the_bit_in_the_middle_of_an_episode(config):
    used, other = env_of(**config), env_of(**config)
    assert used.inexact() is None
    used.reset(seed=3)
    other.reset(seed=4)
    steps(used, 150, seed=1)
    steps(other, 7, seed=2)
    other.load_state_dict(through_checkpoint(used.state_dict()))
    where = difference(steps(used, 250, seed=5), steps(other, 250, seed=5))
    assert where is None, where


@pytest.mark.parametrize(
    "name", ["Walk", "OwnGenerator", "NormalizeObservation", "SavedSmoothed", "Smoothed", "Curriculum"]
)
def test_what_can_be_restored_is_restored(name):
    used, other = env_of(f"state/{name}-v0", num_envs=2), env_of(f"state/{name}-v0", num_envs=2)
    assert used.inexact() is None
    assert other.inexact() is None
    used.reset(seed=3)
    steps(used, 100, seed=1)
    other.load_state_dict(through_checkpoint(used.state_dict()))
    assert difference(steps(used, 200, seed=5), steps(other, 200, seed=5)) is None


@pytest.mark.parametrize("name", ["Hardware", "GlobalGenerator"])
def test_what_cannot_be_restored_is_found_out(name):
    reason = env_of(f"state/{name}-v0").inexact()
    assert reason is not None
    assert f"state/{name}-v0" in reason


def test_the_probe_touches_nothing():
    env = env_of("state/GlobalGenerator-v0")
    env.reset(seed=3)
    space = Walk.action_space
    space.seed(7)
    before = (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())
    generator, observation = space.np_random.bit_generator.state, env.state_dict()
    env.inexact()
    after = (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())
    assert before == after
    assert space.np_random.bit_generator.state == generator, "the space is shared by all instances"
    assert difference(env.state_dict(), observation) is None


def test_an_env_that_ends_elsewhere_is_refused_with_its_name():
    env = env_of("state/Hardware-v0")
    env.reset(seed=3)
    steps(env, 5, seed=1)
    with pytest.raises(EnvError, match=r"state/Hardware-v0.*not deterministic.*--fresh collector"):
        env_of("state/Hardware-v0").load_state_dict(through_checkpoint(env.state_dict()))


@pytest.mark.parametrize("error", [SystemExit, ConnectionError])
def test_an_env_that_fails_when_its_episode_is_played_again_is_named(monkeypatch, error):
    env = env_of("state/Walk-v0", num_envs=2)
    env.reset(seed=1)
    state = through_checkpoint(env.state_dict())

    def failing(self):
        raise error("gone")

    monkeypatch.setattr(Walk, "start", failing)
    with pytest.raises(
        EnvError, match=f"'state/Walk-v0', number 0, raised {error.__name__} at step 0 of its episode: gone"
    ):
        env_of("state/Walk-v0", num_envs=2).load_state_dict(state)


def test_a_recording_does_not_outlive_its_episode():
    env = env_of("CartPole-v1")
    env.reset(seed=3)
    steps(env, 500, seed=1)
    assert len(env.state_dict()["envs"][0]["actions"]) < 100, "a random policy ends an episode of CartPole earlier"


RUN = {"model": {"use": "mlp", "hidden": [8]}, "loss": {"use": "ppo"}, "estimator": {"use": "ppo:gae"}}


def test_a_run_that_cannot_be_exact_says_so_and_counts_what_it_drops(tmp_path, caplog):
    sections = {**RUN, "env": {"use": "gymnasium", "id": "state/Hardware-v0", "num_envs": 2}}
    first = make_run(sections=sections, folder=tmp_path)
    assert "exact = false: env 'state/Hardware-v0'" in caplog.text
    first.trainer.stop_at = 32
    first.trainer.train()
    (*_, entry) = first.trainer.parts.store.entries()
    assert not entry.manifest["exact"]
    caplog.clear()
    resumed = make_run(sections=sections, folder=tmp_path, resume=True)
    dropped = resumed.trainer.collector.dropped_episodes
    assert dropped in (1, 2), "one may have ended just then, by this env's chance"
    assert f"{dropped} running episodes are dropped" in caplog.text
    resumed.trainer.train()
    assert resumed.trainer.state_dict()["collector"]["dropped_episodes"] == dropped


@pytest.mark.parametrize(
    "env",
    [
        {"id": "CartPole-v1"},
        {"id": "CartPole-v1", "num_envs": 4, "vectorization": "native"},
        pytest.param({"id": "InvertedDoublePendulum-v5"}, marks=needs_mujoco),
    ],
    ids=str,
)
def test_a_stopped_and_resumed_run_equals_an_uninterrupted_one(tmp_path, env):
    norm = [{"use": "observation-norm", "frames": 20}] if "Pendulum" in env["id"] else []
    sections = {**RUN, "env": {"use": "gymnasium", **env}, "transform": norm}
    check_resumed(tmp_path, "run.total_frames=512", sections=sections, stop_at=208)
