"""The contracts of the plugin, and of games stepped one by one and in ALE's vector env."""

from importlib.util import find_spec

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
