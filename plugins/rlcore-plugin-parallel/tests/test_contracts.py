"""The contracts of the plugin and of the collector, with one and several workers, in step and ahead."""

from rlcore_plugin_testing.contracts import CollectorContract, PluginContract


class TestPlugin(PluginContract):
    plugin = "parallel"


class TestTwoWorkers(CollectorContract):
    use = "parallel:workers"
    config = {"frames_per_batch": 14, "start_method": "fork", "processes": "always"}


class TestOneWorker(TestTwoWorkers):
    config = {
        "frames_per_batch": 14,
        "start_method": "fork",
        "processes": "always",
        "num_workers": 1,
        "exact_rows": False,
    }


class TestWorkersAhead(TestTwoWorkers):
    config = {"frames_per_batch": 14, "start_method": "fork", "processes": "always", "mode": "async", "max_lag": 2}


class TestWorkersInTheOrderInWhichTheyAreDone(TestTwoWorkers):
    config = {
        "frames_per_batch": 14,
        "start_method": "fork",
        "processes": "always",
        "mode": "async",
        "order": "ready",
        "num_workers": 1,  # whose batches have all envs, as the suite expects
        "max_lag": 2,
    }


class TestInTheProcessOfTheLearner(TestTwoWorkers):
    config = {"frames_per_batch": 14, "start_method": "fork"}


class TestCentral(CollectorContract):
    use = "parallel:central"
    config = {"frames_per_batch": 14, "start_method": "fork"}


class TestAlternating(TestCentral):
    config = {"frames_per_batch": 14, "start_method": "fork", "alternating": True}


class TestAlternatingOnOwnRows(TestCentral):
    config = {"frames_per_batch": 14, "start_method": "fork", "alternating": True, "exact_rows": False}


def note(action, step):
    """Is called after each step, and lets the run go on."""


class TestEachStep(CollectorContract):
    use = "parallel:each-step"
    config = {"frames_per_batch": 14, "call": f"{__name__}:note"}
