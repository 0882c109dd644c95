"""The contracts of the plugin, and of games stepped one by one and in ALE's vector env."""

from importlib.util import find_spec

import numpy as np
import pytest
from rlcore_plugin_testing.contracts import EnvContract, PluginContract

SMALL = {"model": {"use": "cnn:nature-cnn", "channels": [4], "kernels": [8], "strides": [8], "features": 8}}
needs_ale = pytest.mark.skipif(find_spec("ale_py") is None, reason="ale-py is not installed")
needs_cv2 = pytest.mark.skipif(find_spec("cv2") is None, reason="opencv is not installed")


class TestPlugin(PluginContract):
    plugin = "atari"


@pytest.mark.slow
@needs_ale
@needs_cv2
class TestSerialGames(EnvContract):
    use = "atari"
    config = {
        "game": "breakout",
        "num_envs": 2,
        "size": 24,
        "noop_max": 12,
        "max_frames": 80,  # so that several games begin
        "repeat_action_probability": 0.25,
    }
    steps = 60
    terminates = {"episodic_life": True, "max_frames": 4000}
    truncates = {"max_frames": 40}
    around = {**SMALL, "collector": {"frames_per_batch": 64}}

    def test_the_end_of_an_episode_is_shown_though_the_next_has_begun(self):
        cut, goes_on = (self.make(self.bench(), render_mode="rgb_array", max_frames=most) for most in (40, 4000))
        for env in (cut, goes_on):
            env.reset(seed=3)
        for action in [np.array([1, 3])] * 10:
            step = cut.step(action)
            goes_on.step(action)
            assert np.array_equal(cut.render(), goes_on.render())
        assert step.truncated.all()
        assert not np.array_equal(step.observation, goes_on.step(action).observation)


@pytest.mark.slow
@needs_ale
class TestNativeGames(EnvContract):
    """They cannot be rendered."""

    test_rendering_shows_and_changes_nothing = None
    use = "atari"
    config = {
        "game": "breakout",
        "num_envs": 2,
        "size": 24,
        "noop_max": 4,
        "max_frames": 160,
        "vectorization": "native",
        "threads": 1,
    }
    steps = 60
    terminates = {"episodic_life": True, "max_frames": 4000}
    truncates = {"max_frames": 40}
    around = {**SMALL, "collector": {"frames_per_batch": 64}}
