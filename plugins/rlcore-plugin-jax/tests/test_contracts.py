"""The contracts of the plugin, and of envs of gymnax, of its form and of Brax's."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from rlcore_plugin_device.contracts import TensorEnvContract
from rlcore_plugin_testing.contracts import PluginContract

import rlcore

EXAMPLE = Path(__file__).with_name("example.toml")
# a network for images of 10 x 10 cells
SMALL = {"channels": [4], "kernels": [3], "strides": [1], "features": 8, "layout": "last"}
needs_jax = pytest.mark.skipif(find_spec("jax") is None, reason="jax is not installed")
needs_gymnax = pytest.mark.skipif(find_spec("gymnax") is None, reason="gymnax is not installed")


@pytest.fixture(autouse=True)
def own_envs(monkeypatch):
    """As beside a config."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


class TestPlugin(PluginContract):
    plugin = "jax"


class JaxEnvContract(TensorEnvContract):
    use = "jax"
    around = {"model": {"use": "mlp"}}


@needs_gymnax
class TestCartPole(JaxEnvContract):
    config = {"id": "CartPole-v1"}
    truncates = {"max_episode_steps": 3}


@needs_gymnax
@pytest.mark.slow
class TestPendulum(JaxEnvContract):
    config = {"id": "Pendulum-v1", "max_episode_steps": 60}
    terminates = None
    truncates = {}


@needs_gymnax
@pytest.mark.slow
class TestBreakout(JaxEnvContract):
    """Its state says whether the game is over, at its limit too."""

    config = {"id": "Breakout-MinAtar"}
    around = {"model": {"use": "cnn:nature-cnn", **SMALL}}
    truncates = {"max_episode_steps": 2}


@needs_jax
class TestOwn(JaxEnvContract):
    config = {"id": "jax_envs:Drift"}
    truncates = {"max_episode_steps": 1}


@needs_jax
@pytest.mark.slow
class TestBraxForm(JaxEnvContract):
    config = {"id": "jax_envs:Brax"}
    truncates = {"max_episode_steps": 1}


@needs_jax
@pytest.mark.slow
class TestBraxThatTruncates(JaxEnvContract):
    """Of its episodes some end and others are cut off, by its own account."""

    config = {"id": "jax_envs:Brax", "kwargs": {"truncates": True, "bound": 0.6}}
    terminates = {"kwargs": {"truncates": True, "bound": 0.4}}
    truncates = {"kwargs": {"truncates": True, "bound": 9.0}}


@needs_gymnax
@pytest.mark.slow
def test_the_example_learns(tmp_path):
    config = rlcore.load_config(EXAMPLE, [f"run.folder='{tmp_path}'"])
    trainer = rlcore.build(config).trainer
    trainer.train()
    assert trainer.last_evaluation.mean_return > 150
