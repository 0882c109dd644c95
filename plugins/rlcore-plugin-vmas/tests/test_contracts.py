"""The contracts of the plugin, and of scenarios that move, collide, have joints, sensors and an own memory."""

from pathlib import Path

from rlcore_plugin_device.contracts import TensorEnvContract
from rlcore_plugin_testing.contracts import PluginContract

import rlcore

EXAMPLE = Path(__file__).with_name("example.toml")


class TestPlugin(PluginContract):
    plugin = "vmas"


class VmasContract(TensorEnvContract):
    use = "vmas"
    around = {"model": {"use": "mlp"}}
    terminates = None
    truncates = {}
    seeds_each_env = False
    asks_the_host = True
    steps = 24


class TestSimple(VmasContract):
    config = {"scenario": "simple", "max_steps": 7}


class TestBalance(VmasContract):
    config = {"scenario": "balance", "num_envs": 4, "max_steps": 60, "kwargs": {"n_agents": 2}}
    terminates = {}
    truncates = {"max_steps": 2}
    steps = 70


class TestTransport(VmasContract):
    config = {"scenario": "transport", "num_envs": 4, "max_steps": 9}


class TestNavigation(VmasContract):
    config = {"scenario": "navigation", "num_envs": 4, "max_steps": 9}


class TestDiscreteActions(VmasContract):
    config = {"scenario": "simple_spread", "num_envs": 4, "max_steps": 7, "kwargs": {"n_agents": 2}}
    config["continuous_actions"] = False


def test_the_example_learns(tmp_path):
    config = rlcore.load_config(EXAMPLE, ["run.total_frames=51_200", f"run.folder='{tmp_path}'"])
    trainer = rlcore.build(config).trainer
    trainer.train()
    assert trainer.last_evaluation.mean_return > -33  # an agent that was not trained has some -41
