"""The contracts of the plugin and of its hook."""

from rlcore_plugin_testing.contracts import HookContract, PluginContract


class TestPlugin(PluginContract):
    plugin = "runners"


class TestDiagnostics(HookContract):
    use = "runners:diagnostics"
    transient = ("_counts", "_began", "_mark", "_evaluated")  # times, and what a row empties


class TestDiagnosticsOfEvaluations(HookContract):
    use = "runners:diagnostics"
    config = {"traj_window": 0, "log_interval_itrs": 2}
    transient = TestDiagnostics.transient
