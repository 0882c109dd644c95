"""The contracts of the plugin, and of a pool of tasks."""

from importlib.util import find_spec

import pytest
from rlcore_plugin_testing.contracts import EnvContract, PluginContract


class TestPlugin(PluginContract):
    plugin = "envpool"


@pytest.mark.skipif(find_spec("envpool") is None, reason="envpool is not installed")
class TestEnvpool(EnvContract):
    """It cannot be rendered."""

    test_rendering_shows_and_changes_nothing = None
    use = "envpool"
    config = {"id": "CartPole-v1", "num_envs": 2, "threads": 1}
    truncates = {"max_episode_steps": 5}
