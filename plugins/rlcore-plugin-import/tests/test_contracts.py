"""The contract of hooks, and what this hook logs."""

from pathlib import Path

from rlcore_plugin_testing.contracts import HookContract, PluginContract

import rlcore

EXAMPLE = Path(__file__).with_name("example.toml")


class TestPlugin(PluginContract):
    plugin = "import"


class TestImportHook(HookContract):
    use = "import"
    config = {"episodes": 2}

    def test_logs_the_mean_and_the_best_mean(self):
        hook = self.make(self.bench())
        logged = []
        for return_ in (1.0, 5.0, 3.0, 0.0):
            hook.episode_end(rlcore.Episode(return_, 1, 0, {}))
            logged.append(hook.post_steps_log())
        assert logged.pop(0) is None
        assert [row["import/mean_return"] for row in logged] == [3.0, 4.0, 1.5]
        assert [row["import/best_mean_return"] for row in logged] == [3.0, 4.0, 4.0]


def test_the_example_trains(tmp_path):
    config = rlcore.load_config(EXAMPLE, ["run.total_frames=1_024", f"run.folder='{tmp_path}'"])
    assert rlcore.build(config).trainer.train().frames == 1024
