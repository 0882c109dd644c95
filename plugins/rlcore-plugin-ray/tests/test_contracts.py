"""The contracts of the plugin, of its launcher, and of its collector."""

import os

import pytest
from rlcore_plugin_testing.contracts import CollectorContract, LauncherContract, PluginContract

pytest.importorskip("ray", reason="Ray is not installed: pip install rlcore-plugin-ray")

RAY = os.environ.get("RLCORE_TEST_RAY")


class TestPlugin(PluginContract):
    plugin = "ray"


class TestRanks(LauncherContract):
    use = "ray:ray"


class TestRanksOnSeveralHosts(LauncherContract):
    use = "ray:ray"
    config = {"group": "gloo"}


@pytest.mark.skipif(RAY is None, reason="takes minutes: set RLCORE_TEST_RAY to the address of a Ray")
class TestActors(CollectorContract):
    use = "ray:actors"
    config = {"frames_per_batch": 14, "address": RAY, "num_cpus": 0.1, "num_workers": 1}

    @pytest.fixture(autouse=True, scope="class")
    def _connected(self):
        """Be connected once: the collectors find it so, and leave it so."""
        import ray

        ray.init(address=RAY, log_to_driver=False, ignore_reinit_error=True)
