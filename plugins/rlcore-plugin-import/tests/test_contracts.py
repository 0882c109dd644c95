"""The contract of the plugin, which has no components: it adds a command."""

from rlcore_plugin_testing.contracts import PluginContract


class TestPlugin(PluginContract):
    plugin = "import"

    def test_provides_each_component_once(self):
        assert self.components() == []
