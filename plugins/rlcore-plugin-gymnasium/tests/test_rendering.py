"""Pictures of envs: what they show, without a display, and what an error says where nothing can render."""

import os
import subprocess
import sys
from importlib.util import find_spec

import gymnasium
import numpy as np
import pytest
from rlcore_plugin_gymnasium.rendering import pictures, prepare_rendering
from rlcore_plugin_testing.contracts import EnvContract

from rlcore.errors import EnvError

needs_mujoco = pytest.mark.skipif(find_spec("mujoco") is None, reason="MuJoCo is not installed")


def made(id, **config):
    return EnvContract.of("gymnasium", {"id": id, "render_mode": "rgb_array"}).env(**config)


@needs_mujoco
def test_each_mujoco_env_shows_its_own_state_whatever_others_do():
    env = made("InvertedDoublePendulum-v5", num_envs=2)
    env.reset(seed=0)
    for _ in range(3):
        env.step(np.array([[1.0], [-1.0]], dtype=np.float32))
    before = env.render()
    assert before.shape == (2, 480, 480, 3)
    other = made("InvertedDoublePendulum-v5")  # takes the OpenGL context, and frees it
    other.reset(seed=5)
    other.render()
    other.close()
    assert np.array_equal(env.render(), before)
    assert not np.array_equal(before[0], before[1])
    env.close()


def cart(picture):
    """Return the column of the middle of the cart, which is black on white."""
    return np.flatnonzero((picture.sum(-1) == 0).sum(0) > 10).mean()


@pytest.mark.parametrize("vectorization", ["serial", "native"])
def test_a_picture_shows_where_the_cart_is(vectorization):
    env = made("CartPole-v1", num_envs=2, vectorization=vectorization)
    env.reset(seed=0)
    for _ in range(7):
        env.step(np.array([0, 1]))
    left, right = env.render()
    assert left.shape == (400, 600, 3)
    assert cart(left) < 297 < 303 < cart(right)
    env.close()


def test_the_pace_of_pictures_is_that_of_the_env():
    assert made("CartPole-v1").render_fps == 50
    assert made("CartPole-v1", frame_skip=4).render_fps == 12.5
    assert made("CartPole-v1", vectorization="native").render_fps == 50


@pytest.mark.filterwarnings("ignore:.*calling render method without")
def test_an_env_made_without_a_render_mode_says_so():
    plain = made("CartPole-v1", render_mode=None)
    plain.reset(seed=0)
    with pytest.raises(EnvError, match=r"'CartPole-v1' rendered NoneType.*render_mode = 'rgb_array'"):
        plain.render()


class Grey(gymnasium.Env):
    """Renders one channel."""

    spec = None

    def render(self):
        return np.zeros((4, 6), dtype=np.uint8)


def test_a_picture_of_another_form_is_an_error():
    with pytest.raises(EnvError, match=r"'grey' rendered uint8 \(4, 6\), not an array uint8 \[height, width, 3\]"):
        pictures([Grey()], "grey")


def test_variables_that_are_set_stay(monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.setenv("MUJOCO_GL", "osmesa")
    monkeypatch.setenv("SDL_VIDEODRIVER", "offscreen")
    prepare_rendering()
    assert (os.environ["MUJOCO_GL"], os.environ["SDL_VIDEODRIVER"]) == ("osmesa", "offscreen")


def rendering(id, **environment):
    """Return what rendering says in a process of its own, for what is chosen once per process."""
    code = f"""
from rlcore.errors import EnvError
from rlcore_plugin_gymnasium.config import Config
from rlcore_plugin_gymnasium.env import make
from rlcore.types import Context
try:
    env = make(Config(id={id!r}, render_mode="rgb_array"), Context.alone("tests"))
    env.reset(seed=0)
    print("picture", env.render().shape)
    env.close()
except EnvError as error:
    print("error", error)
"""
    bare = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**bare, **environment}
    )
    return done.stdout


def test_a_missing_renderer_of_classic_control_says_what_to_install(monkeypatch):
    env = made("CartPole-v1")
    env.reset(seed=0)
    monkeypatch.setitem(sys.modules, "pygame", None)  # as if it were not installed
    message = r"'CartPole-v1' cannot be rendered: DependencyNotInstalled.*rlcore-plugin-gymnasium\[classic-control\]"
    with pytest.raises(EnvError, match=message):
        env.render()


def test_nothing_but_the_picture_is_printed():
    assert rendering("CartPole-v1") == "picture (1, 400, 600, 3)\n"


@needs_mujoco
def test_a_missing_renderer_of_mujoco_says_what_to_install():
    # glfw needs a display, and there is none
    out = rendering("InvertedDoublePendulum-v5", MUJOCO_GL="glfw")
    assert out.startswith("error env 'InvertedDoublePendulum-v5' cannot be rendered")
    assert "libegl1" in out
    assert "MUJOCO_GL is 'glfw'" in out


@needs_mujoco
def test_a_renderer_of_another_name_says_what_there_is():
    # MuJoCo refuses the name when it is imported, so no env can be made, rendering or not
    out = rendering("InvertedDoublePendulum-v5", MUJOCO_GL="no-such")
    assert out.startswith("error env 'InvertedDoublePendulum-v5' cannot be made")
    assert "MUJOCO_GL=egl" in out
    assert "MUJOCO_GL is 'no-such'" in out


@pytest.mark.parametrize("vectorization", ["serial", "native"])
def test_the_end_of_an_episode_is_shown_though_the_next_has_begun(vectorization):
    cut, goes_on = (
        made("CartPole-v1", vectorization=vectorization, num_envs=2, render_mode="rgb_array", max_episode_steps=limit)
        for limit in (3, 100)
    )
    for env in (cut, goes_on):
        env.reset(seed=3)
    assert np.array_equal(cut.render(), goes_on.render())
    for _ in range(3):
        step = cut.step(np.array([1, 0]))
        goes_on.step(np.array([1, 0]))
        assert np.array_equal(cut.render(), goes_on.render())
        assert np.array_equal(cut.render([1]), goes_on.render([1]))
    assert step.truncated.all()
    for env in (cut, goes_on):
        env.step(np.array([1, 0]))
    assert not np.array_equal(cut.render(), goes_on.render())
