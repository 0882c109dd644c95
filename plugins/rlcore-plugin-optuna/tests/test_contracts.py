"""The contracts of the plugin and of its hook, in a run that lies in no study."""

from rlcore_plugin_testing.contracts import HookContract, PluginContract


class TestPlugin(PluginContract):
    plugin = "optuna"


class TestSweepTrial(HookContract):
    use = "optuna:sweep-trial"
    config = {"trial": 0}
