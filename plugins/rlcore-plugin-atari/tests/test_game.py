"""Games: their names, what begins an episode and what ends one, and their state to the bit."""

import sys

import numpy as np
import pytest
from rlcore_plugin_testing import through_checkpoint

from rlcore.errors import ConfigError
from rlcore.types import Context

pytest.importorskip("ale_py")
pytest.importorskip("cv2")

from rlcore_plugin_atari.config import Config
from rlcore_plugin_atari.env import make


def games(name="training", **keys):
    return make(
        Config(**{"game": "breakout", "size": 24, "noop_max": 4, **keys}),
        Context.alone("tests").for_component("env", name),
    )


def plan(env, steps, seed=0):
    return np.random.default_rng(seed).integers(int(env.spec.action_space.n), size=(steps, env.spec.num_envs))


def test_a_new_process_goes_on_to_the_bit_with_sticky_actions():
    keys = {"num_envs": 2, "repeat_action_probability": 0.25, "episodic_life": True}
    env, other = games(**keys), games(**keys)
    env.reset(seed=4)
    actions = plan(env, 90)
    for action in actions[:8]:
        env.step(action)
    other.load_state_dict(through_checkpoint(env.state_dict()))
    ends = 0
    for action in actions[8:]:
        one, two = env.step(action), other.step(action)
        ends += len(one.infos)
        assert np.array_equal(one.observation, two.observation)
        assert np.array_equal(one.reward, two.reward)
        assert np.array_equal(one.terminated, two.terminated)
        assert all(
            np.array_equal(frame, two.final_observation[index]) for index, frame in one.final_observation.items()
        )
    assert ends, "a life is lost within 330 frames"


def test_an_episode_begins_with_its_first_frame_repeated_and_moves_on_by_one():
    env = games()
    first = env.reset(seed=1).copy()
    assert (first[0] == first[0, -1]).all()
    step = env.step(np.array([2]))
    assert np.array_equal(step.observation[0, :-1], first[0, 1:])
    assert not np.array_equal(step.observation[0, -1], first[0, -1])


@pytest.mark.parametrize(("name", "ends"), [("training", True), ("training evaluation", False)])
def test_a_lost_life_ends_an_episode_of_training_alone(name, ends):
    env = games(name, episodic_life=True, max_frames=2000)
    env.reset(seed=1)
    assert any(env.step(action).terminated[0] for action in plan(env, 90)) == ends


def test_a_game_is_cut_off_after_its_frames():
    env = games(max_frames=12)
    env.reset(seed=1)
    flags = [(step.terminated[0], step.truncated[0]) for step in map(env.step, plan(env, 3))]
    assert flags == [(False, False), (False, False), (False, True)]


@pytest.mark.parametrize(
    "name", ["space_invaders", "SpaceInvaders", "ALE/SpaceInvaders-v5", "SpaceInvadersNoFrameskip-v4"]
)
def test_a_game_goes_by_the_names_that_it_has_elsewhere(name):
    assert games(game=name).spec.id == "atari space_invaders"


def test_all_actions_and_colours_are_there_where_that_is_said():
    env = games(full_action_space=True, grayscale=False)
    assert env.spec.action_space.n == 18
    assert env.reset(seed=0).shape == (1, 4, 24, 24, 3)


def test_an_unknown_game_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match=r"\[env\] game = 'pnog': there is no such game; did you mean 'pong'"):
        games(game="pnog")


@pytest.mark.parametrize(("module", "package"), [("ale_py", "ale-py"), ("cv2", "opencv-python-headless")])
def test_a_missing_library_is_answered_with_the_extra_that_brings_it(module, package, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=rf"\[env\] use = 'atari' needs {package}: .*pip install 'rlcore\[atari\]'"):
        games()
