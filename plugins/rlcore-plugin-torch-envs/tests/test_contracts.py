"""The contracts of the plugin and of each of its envs."""

from pathlib import Path

import pytest
from rlcore_plugin_device.contracts import TensorEnvContract
from rlcore_plugin_testing.contracts import PluginContract

import rlcore

EXAMPLE = Path(__file__).with_name("example.toml")
# a network for images of 10 x 10 cells; Seaquest has as many channels
SMALL = {"channels": [4], "kernels": [3], "strides": [1], "features": 8, "layout": "last"}


class TestPlugin(PluginContract):
    plugin = "torch-envs"


class TorchEnvContract(TensorEnvContract):
    use = "torch-envs"
    around = {"model": {"use": "mlp"}}


class TestCartPole(TorchEnvContract):
    config = {"id": "CartPole-v1"}
    truncates = {"max_episode_steps": 3}


class TestCartPoleWithoutVelocities(TorchEnvContract):
    config = {"id": "CartPole-v1", "observed": [0, 2]}
    truncates = {"max_episode_steps": 3}


class TestAcrobot(TorchEnvContract):
    config = {"id": "Acrobot-v1", "max_episode_steps": 60}
    terminates = None
    truncates = {}


class TestMountainCar(TorchEnvContract):
    config = {"id": "MountainCar-v0"}
    terminates = None
    truncates = {}


class TestMountainCarContinuous(TorchEnvContract):
    config = {"id": "MountainCarContinuous-v0", "max_episode_steps": 60}
    terminates = None
    truncates = {}


class TestPendulum(TorchEnvContract):
    config = {"id": "Pendulum-v1"}
    terminates = None
    truncates = {}


class MinAtarContract(TensorEnvContract):
    use = "torch-envs"
    around = {"model": {"use": "cnn:nature-cnn", **SMALL}}
    truncates = {"max_episode_steps": 3}


class TestAsterix(MinAtarContract):
    config = {"id": "MinAtar/Asterix-v1"}


class TestBreakout(MinAtarContract):
    config = {"id": "MinAtar/Breakout-v0"}


class TestFreeway(MinAtarContract):
    config = {"id": "MinAtar/Freeway-v1", "max_episode_steps": 60}  # 2501 steps by itself
    terminates = None
    truncates = {}


class TestSeaquest(MinAtarContract):
    config = {"id": "MinAtar/Seaquest-v1", "max_episode_steps": 280}  # who stays at the surface plays forever


class TestSpaceInvaders(MinAtarContract):
    config = {"id": "MinAtar/SpaceInvaders-v1"}


@pytest.mark.slow
def test_the_example_learns(tmp_path):
    config = rlcore.load_config(EXAMPLE, [f"run.folder='{tmp_path}'"])
    trainer = rlcore.build(config).trainer
    trainer.train()
    assert trainer.last_evaluation.mean_return > 150
