"""The contract of the plugin, which has no components: other plugins make loggers with it, and it adds a command."""

from rlcore_plugin_testing.contracts import PluginContract


class TestPlugin(PluginContract):
    plugin = "spool"

    def test_provides_each_component_once(self):
        assert self.components() == []
