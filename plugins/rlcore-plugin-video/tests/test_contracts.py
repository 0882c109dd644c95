"""The contracts of the plugin and of the hook."""

from rlcore_plugin_testing.contracts import HookContract, PluginContract


class TestPlugin(PluginContract):
    plugin = "video"


class TestVideo(HookContract):
    use = "video:video"


class TestVideoOfEverySecondEvaluation(HookContract):
    use = "video:video"
    config = {"every": 2, "episodes": 2, "grid": False}
