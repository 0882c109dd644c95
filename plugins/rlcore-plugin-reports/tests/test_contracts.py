"""The contract of the plugin, which has no components: it adds commands, and lends names to the core."""

from rlcore_plugin_testing.contracts import PluginContract


class TestPlugin(PluginContract):
    plugin = "reports"

    def test_provides_each_component_once(self):
        assert self.components() == []
