"""The contract of the plugin, which has no components: it adds commands."""

from rlcore_plugin_testing.contracts import PluginContract


class TestPlugin(PluginContract):
    plugin = "console"

    def test_provides_each_component_once(self):
        assert self.components() == []
