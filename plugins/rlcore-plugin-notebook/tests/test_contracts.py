"""The contracts of the plugin and of its hook, outside of a notebook, where it shows nothing."""

from rlcore_plugin_testing.contracts import HookContract, PluginContract


class TestPlugin(PluginContract):
    plugin = "notebook"


class TestNotebookDisplay(HookContract):
    use = "notebook"
