"""Gymnasium envs: what both ways of stepping have in common, and the errors of the config."""

from collections.abc import Callable

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode, VectorEnv
from rlcore_plugin_gymnasium.config import Config
from rlcore_plugin_gymnasium.env import make
from rlcore_plugin_gymnasium.native import NativeEnv
from rlcore_plugin_gymnasium.serial import SerialEnv
from rlcore_plugin_testing import make_run
from rlcore_plugin_testing.contracts import EnvContract

from rlcore.errors import ConfigError, EnvError
from rlcore.types import Context

CONTEXT = Context.alone("env")


def made(**config):
    return make_run(sections={"env": {"use": "gymnasium", **config}}).trainer.collector


def test_an_unknown_id_is_an_error_with_the_nearest_one():
    with pytest.raises(ConfigError, match=r"NoSuchPole-v1.*cannot be made"):
        made(id="NoSuchPole-v1")


def test_a_version_that_does_not_exist_is_an_error():
    with pytest.raises(ConfigError, match="CartPole-v99"):
        made(id="CartPole-v99")


def test_an_argument_that_the_env_does_not_take_is_an_error():
    with pytest.raises(ConfigError, match="no_such_argument"):
        made(id="CartPole-v1", kwargs={"no_such_argument": 1})


def test_a_module_that_does_not_exist_is_an_error():
    with pytest.raises(ConfigError, match="no_such_module"):
        made(id="no_such_module:Some-v0")


def test_native_needs_a_vector_form():
    with pytest.raises(ConfigError, match="no vector form"):
        made(id="MountainCarContinuous-v0", vectorization="native")


class CountingVector(VectorEnv):
    """Counts to 5, and begins again in the same step or in the next one."""

    def __init__(self, num_envs=1, metadata=None):
        self.num_envs, self.metadata = num_envs, metadata or {}
        self.single_observation_space, self.single_action_space = Counting.observation_space, Counting.action_space

    def reset(self, *, seed=None, options=None):
        self.time = np.zeros((self.num_envs, 1), np.float32)
        return self.time.copy(), {}


class Counting(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, metadata=None, shift: Callable[[int], int] | None = None, note=""):
        self.shift = shift or (lambda time: time)
        self.note = note

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.time += 1
        return np.array([self.shift(self.time)], np.float32), 1.0, self.time >= 5, False, {}


@pytest.fixture
def counting(monkeypatch):
    spec = EnvSpec("Counting-v0", Counting, vector_entry_point=CountingVector)
    monkeypatch.setitem(gymnasium.registry, "Counting-v0", spec)
    return "Counting-v0"


@pytest.mark.parametrize(
    ("metadata", "message"),
    [({}, "does not say when it begins new episodes"), ({"autoreset_mode": AutoresetMode.SAME_STEP}, "'SameStep'")],
)
def test_a_vector_form_that_may_begin_episodes_otherwise_is_refused_or_left_alone(metadata, message, counting):
    with pytest.raises(ConfigError, match=message):
        make(Config(id=counting, num_envs=16, vectorization="native", kwargs={"metadata": metadata}), CONTEXT)
    assert isinstance(make(Config(id=counting, num_envs=16, kwargs={"metadata": metadata}), CONTEXT), SerialEnv)
    declared = {"metadata": {"autoreset_mode": AutoresetMode.NEXT_STEP}}
    assert isinstance(make(Config(id=counting, num_envs=16, kwargs=declared), CONTEXT), NativeEnv)


def test_a_function_among_the_arguments_is_a_name(counting):
    env = make(Config(id=counting, kwargs={"shift": "operator:neg", "note": "operator:neg"}), CONTEXT)
    env.reset(seed=0)
    assert env.step(np.zeros(1, int)).observation.tolist() == [[-1.0]]
    assert env._envs[0].unwrapped.note == "operator:neg", "a text where the constructor asks for none of them"
    with pytest.raises(ConfigError, match=r"\[env\] kwargs shift = 'operator:neq'.*did you mean 'eq'"):
        make(Config(id=counting, kwargs={"shift": "operator:neq"}), CONTEXT)


def test_native_cannot_repeat_actions():
    with pytest.raises(ConfigError, match="frame_skip"):
        made(id="CartPole-v1", vectorization="native", frame_skip=2)


@pytest.fixture
def register():
    """Register envs for one test."""
    names = []

    def add(name, entry_point):
        gymnasium.register(name, entry_point)
        names.append(name)

    yield add
    for name in names:
        del gymnasium.registry[name]


def test_a_missing_package_is_an_error_with_the_command(register):
    def needs_more(**_):
        raise gymnasium.error.DependencyNotInstalled("no module named 'physics'")

    register("NeedsMore-v0", needs_more)
    with pytest.raises(ConfigError, match=r"physics.*pip install"):
        made(id="NeedsMore-v0")


class Broken(gymnasium.Env):
    """Fails in its third step."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 2
        return np.zeros(2, dtype=np.float32), {}

    def step(self, action):
        self.left -= 1
        if self.left < 0:
            raise ArithmeticError("the pole is gone")
        return np.zeros(2, dtype=np.float32), 0.0, False, False, {}


def test_an_env_that_raises_is_named_with_its_step(register):
    register("Broken-v0", Broken)
    with pytest.raises(EnvError, match=r"'Broken-v0', number 0, raised ArithmeticError at step 2.*the pole is gone"):
        made(id="Broken-v0").collect()


def test_rewards_of_repeated_actions_are_summed():
    config = {"id": "CartPole-v1", "frame_skip": 4}
    env = EnvContract.of("gymnasium", config, {"collector": {"frames_per_batch": 64}}).env(num_envs=1)
    env.reset(seed=1)
    assert env.step(np.array([0])).reward.tolist() == [4.0]


def test_auto_takes_the_vector_form_from_sixteen_envs_on():
    case = EnvContract.of("gymnasium", {"id": "CartPole-v1", "num_envs": 2})
    assert case.env(num_envs=15).spec.reset_mode == "same_step"
    assert case.env(num_envs=16).spec.reset_mode == "next_step"


def test_serial_and_native_envs_step_alike():
    """From equal states: the first step of both, up to the precision of the native form."""
    case = EnvContract.of("gymnasium", {"id": "CartPole-v1", "num_envs": 2})
    serial, native = case.env(), case.env(vectorization="native")
    serial.reset(seed=1)
    start = native.reset(seed=1)
    for index, env in enumerate(serial._envs):
        env.unwrapped.state = np.array(start[index], dtype=np.float64)
    for _ in range(8):
        action = np.array([0, 1])
        one, two = serial.step(action), native.step(action)
        np.testing.assert_allclose(one.observation, two.observation, rtol=1e-4, atol=1e-6)
        np.testing.assert_array_equal(one.reward, two.reward)
        np.testing.assert_array_equal(one.terminated, two.terminated)
