"""The contracts of the plugin and of its hook."""

from rlcore_plugin_testing.contracts import HookContract, PluginContract


class TestPlugin(PluginContract):
    plugin = "health"


class TestHealth(HookContract):
    use = "health"
    transient = ("_looked_at",)
