"""The transform that renders: what it writes, for single and vector envs, and that it can be switched off."""

import gymnasium
import numpy as np
import pytest
import torch
from rlcore_plugin_testing import make_trainer
from rlcore_plugin_video.pixel_render import PixelRenderTransform
from rlcore_plugin_video.video_recorder import VideoRecorder
from tensordict import TensorDict

import rlcore
from rlcore import ConfigError, EnvError


def toy(num_envs=2):
    """Return a toy env that can be rendered; its picture has a bar of two columns per step."""
    trainer = make_trainer(sections={"hook": [{"use": "testing:toy"}]})
    make_env = trainer.hooks.hooks[0].instance.context.part("make_env")
    env = make_env(num_envs, render_mode="rgb_array", episode_lengths=[9])
    env.reset(seed=0)
    return env


class Counting:
    """Renders its own array again and again, with the number of the call."""

    def __init__(self):
        self.array = np.zeros((4, 6, 3), dtype=np.uint8)

    def show(self, tensordict=None, *, shift=0):
        self.array += 1
        extra = 0 if tensordict is None else int(tensordict["offset"])
        return self.array[::-1] if not (shift or extra) else self.array + np.uint8(shift + extra)

    def nothing(self):
        return None

    def several(self):
        return [np.full((4, 6, 3), value, dtype=np.uint8) for value in (1, 2)]


def test_it_is_a_name_of_rlcore():
    assert rlcore.PixelRenderTransform is PixelRenderTransform


def test_the_pixels_of_a_vector_env_are_written_each_step():
    env = toy()
    render = PixelRenderTransform(env=env)
    for elapsed in range(3):
        given = TensorDict({}, batch_size=[2])
        assert render(given) is given
        assert given["pixels"].shape == (2, 32, 48, 3)
        assert (given["pixels"][:, 0, :, 2] == 255).sum(-1).tolist() == [2 * elapsed] * 2
        env.step(np.zeros((2, 1), dtype=np.float32))


def test_a_recorder_takes_what_is_rendered():
    videos = []

    class Logger:
        def log_video(self, name, video, step, fps):
            videos.append((video, step))

    env = toy()
    render, recorder = PixelRenderTransform(env=env), VideoRecorder(Logger(), "toy")
    for _ in range(4):
        recorder(render(TensorDict({}, batch_size=[2])))
        env.step(np.zeros((2, 1), dtype=np.float32))
    recorder.dump()
    ((video, step),) = videos
    assert (video.shape, step) == ((1, 4, 3, 32, 96), 8)
    assert (video[0, :, 2, 0] == 255).sum(-1).tolist() == [0, 4, 8, 12]


def test_a_single_env_of_gymnasium_is_rendered():
    env = gymnasium.make("CartPole-v1", render_mode="rgb_array")
    env.reset(seed=0)
    given = PixelRenderTransform(["view"], env=env)(TensorDict())
    assert np.array_equal(given["view"].numpy(), env.render())
    assert given["view"].shape == (400, 600, 3)
    env.close()


def test_an_array_that_is_reused_or_flipped_is_copied():
    env = Counting()
    render = PixelRenderTransform(env=env, render_method="show")
    first, second = render(TensorDict())["pixels"], render(TensorDict())["pixels"]
    assert (first[0, 0, 0], second[0, 0, 0]) == (1, 2)


def test_arguments_and_the_tensordict_are_passed():
    env = Counting()
    assert PixelRenderTransform(env=env, render_method="show", shift=10)(TensorDict())["pixels"].max() == 11
    render = PixelRenderTransform(env=env, render_method="show", pass_tensordict=True, shift=10)
    assert render(TensorDict({"offset": torch.tensor(5)}))["pixels"].max() == 17


def test_preproc_changes_what_was_rendered():
    render = PixelRenderTransform(preproc=lambda array: array[:2] * 3, env=Counting(), render_method="show")
    pixels = render(TensorDict())["pixels"]
    assert pixels.shape == (2, 6, 3)
    assert pixels.eq(3).all()


def test_a_list_of_pictures_is_one_array():
    pixels = PixelRenderTransform(env=Counting(), render_method="several")(TensorDict({}, batch_size=[2]))["pixels"]
    assert pixels[:, 0, 0, 0].tolist() == [1, 2]


@pytest.mark.parametrize("as_non_tensor", [None, True])
def test_one_picture_of_several_envs_is_no_tensor(as_non_tensor):
    render = PixelRenderTransform(env=Counting(), render_method="show", as_non_tensor=as_non_tensor)
    given = render(TensorDict({}, batch_size=[3]))
    assert isinstance(given["pixels"], np.ndarray)
    assert given["pixels"].shape == (4, 6, 3)


def test_it_can_be_switched_off_and_on():
    env = Counting()
    render = PixelRenderTransform(env=env, render_method="show")
    assert render.enabled
    for mode, expected in ((None, False), (None, True), ("off", False), ("on", True), (False, False), (True, True)):
        render.switch(mode)
        assert render.enabled is expected
    render.switch("off")
    assert "pixels" not in render(TensorDict())
    assert not env.array.any(), "it rendered though it was off"
    with pytest.raises(ConfigError, match="mode = 'of'; it is 'on', 'off', True or False"):
        render.switch("of")


def test_an_env_that_renders_nothing_is_an_error():
    with pytest.raises(EnvError, match=r"rendered nothing; make it with render_mode = 'rgb_array'"):
        PixelRenderTransform(env=Counting(), render_method="nothing")(TensorDict())


def test_an_env_without_the_method_is_an_error():
    with pytest.raises(ConfigError, match="Counting has no method 'render'"):
        PixelRenderTransform(env=Counting())


@pytest.mark.parametrize("out_keys", ["pixels", (), ("a", "b")])
def test_it_writes_one_key(out_keys):
    with pytest.raises(ConfigError, match="writes one key"):
        PixelRenderTransform(out_keys, env=Counting(), render_method="show")
