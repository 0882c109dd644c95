"""The contracts of the plugin and of its hook."""

from rlcore_plugin_testing.contracts import HookContract, PluginContract


class TestPlugin(PluginContract):
    plugin = "bench"


class TestLearningCurve(HookContract):
    use = "bench:learning-curve"
    config = {"episodes": 2, "points": 4}
    # no two runs take the same time; a resume reads it from a file beside the curve
    transient = ("_seconds", "_seconds_before", "_untimed", "_noted")
