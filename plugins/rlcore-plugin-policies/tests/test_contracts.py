"""The contract of the plugin, which has no components: it lends names to `rlcore`."""

from rlcore_plugin_testing.contracts import PluginContract


class TestPlugin(PluginContract):
    plugin = "policies"

    def test_provides_each_component_once(self):
        assert self.components() == []
