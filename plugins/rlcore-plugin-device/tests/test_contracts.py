"""The contract of collectors, and the size of a batch."""

from pathlib import Path

from rlcore_plugin_testing.contracts import CollectorContract, PluginContract

import rlcore

EXAMPLE = Path(__file__).with_name("example.toml")


class TestPlugin(PluginContract):
    plugin = "device"


class TestDeviceCollector(CollectorContract):
    use = "device"
    config = {"steps": 8}

    def test_a_batch_has_as_many_steps_of_each_env_as_asked(self):
        context = self.bench()
        collector = self.make(context, steps=3)
        assert list(collector.collect().batch_size) == [context.env_spec.num_envs, 3]
        assert collector.batch_steps == 3 * context.env_spec.num_envs


def test_the_example_trains(tmp_path):
    config = rlcore.load_config(EXAMPLE, ["run.total_frames=1_024", f"run.folder='{tmp_path}'"])
    assert rlcore.build(config).trainer.train().frames == 1024
