"""Envs of other libraries: found by their ids alone, seen as arrays, and restored to the bit in the middle of episodes.

Each test needs its library, and is skipped without it.
"""

import copy

import numpy as np
import pytest
from rlcore_plugin_gymnasium.box2d import reset_of
from rlcore_plugin_gymnasium.config import Config
from rlcore_plugin_gymnasium.env import make
from rlcore_plugin_gymnasium.serial import SerialEnv
from rlcore_plugin_testing import through_checkpoint

from rlcore.errors import ConfigError
from rlcore.types import Context

IMAGE = [{"use": "FilterObservation", "filter_keys": ["direction", "image"]}]


def made(**keys):
    return make(Config(**keys), Context.alone("tests"))


def walked(env, steps, seed=0):
    """Step by actions of a generator, and return everything that was seen."""
    space = copy.deepcopy(env.spec.action_space)  # that of an env is part of what it holds
    space.seed(seed)
    seen = []
    for _ in range(steps):
        step = env.step(np.stack([space.sample() for _ in range(env.spec.num_envs)]))
        flags = step.terminated.tobytes() + step.truncated.tobytes()
        seen.append(step.observation.tobytes() + step.reward.tobytes() + flags)
    return seen


@pytest.mark.parametrize(
    ("library", "keys", "steps"),
    [
        ("Box2D", {"id": "LunarLander-v3", "num_envs": 2}, 150),
        ("Box2D", {"id": "BipedalWalker-v3", "max_episode_steps": 50}, 120),
        ("minatar", {"id": "MinAtar/Breakout-v1", "num_envs": 2}, 100),  # it remembers the last action of an episode
        ("minatar", {"id": "MinAtar/SpaceInvaders-v1"}, 100),
        ("minigrid", {"id": "MiniGrid-Empty-5x5-v0", "wrappers": IMAGE, "max_episode_steps": 30}, 70),
        pytest.param("highway_env", {"id": "parking-v0", "max_episode_steps": 4}, 6, marks=pytest.mark.slow),
    ],
)
def test_an_id_is_enough_and_resumes_to_the_bit(library, keys, steps):
    pytest.importorskip(library)
    env, other = made(**keys), made(**keys)
    assert env.inexact() is other.inexact() is None
    env.reset(seed=3)
    walked(env, steps)
    other.load_state_dict(through_checkpoint(env.state_dict()))
    assert walked(other, steps, seed=1) == walked(env, steps, seed=1)
    assert other.unrestored() is None


def test_each_episode_of_a_walker_begins_as_in_a_new_world():
    """Gymnasium keeps the world, whose contacts come in another order then."""
    pytest.importorskip("Box2D")
    old, new = SerialEnv(Config(id="BipedalWalker-v3")), SerialEnv(Config(id="BipedalWalker-v3"))
    old.reset(seed=1)
    walked(old, 120)
    assert old.reset(seed=2).tobytes() == new.reset(seed=2).tobytes()
    assert walked(old, 100) == walked(new, 100)


def test_other_envs_are_reset_as_they_are():
    import gymnasium

    env = gymnasium.make("CartPole-v1")
    assert reset_of(env) == env.reset


def test_a_text_among_the_leaves_names_the_wrapper_that_leaves_it_out():
    pytest.importorskip("minigrid")
    with pytest.raises(ConfigError) as error:
        made(id="MiniGrid-Empty-5x5-v0")
    told = str(error.value)
    assert told.count("mission") >= 1
    wrappers = told.partition("[env] wrappers = ")[2]
    assert wrappers == '[{ use = "FilterObservation", filter_keys = ["direction", "image"] }]'
    assert set(made(id="MiniGrid-Empty-5x5-v0", wrappers=IMAGE).spec.observation_space.leaves) == {"direction", "image"}
