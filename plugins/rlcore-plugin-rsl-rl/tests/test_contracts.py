"""The contracts of the plugin and of each of its components."""

from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from rlcore_plugin_device.contracts import TensorEnvContract
from rlcore_plugin_testing.contracts import HookContract, LossContract, ModelContract, PluginContract

import rlcore

from .vec_envs import Hover

EXAMPLE = Path(__file__).with_name("example.toml")
HOVER = {"use": "rsl-rl", "make": "vec_envs:Hover", "num_envs": 4}
SMALL = {"use": "rsl-rl:rsl-rl", "actor_hidden": [8], "critic_hidden": [8]}


@pytest.fixture(autouse=True)
def own_envs(monkeypatch):
    """As beside a config."""
    monkeypatch.syspath_prepend(str(EXAMPLE.parent))


class TestPlugin(PluginContract):
    plugin = "rsl-rl"


class VecEnvContract(TensorEnvContract):
    use = "rsl-rl:rsl-rl"
    around = {"model": SMALL}
    seeds_each_env = False
    terminates = {"kwargs": {"size": 1.0}}
    truncates = {"kwargs": {"limit": 3}}


class TestHover(VecEnvContract):
    config = {"make": "vec_envs:Hover"}


class TestOneGroup(VecEnvContract):
    config = {"make": "vec_envs:OneGroup", "clip_actions": 0.5}


class TestModel(ModelContract):
    use = "rsl-rl:rsl-rl"
    config = {**{key: value for key, value in SMALL.items() if key != "use"}, "init_std": 0.5}
    around = {"env": HOVER}


class TestModelThatNormalises(ModelContract):
    use = "rsl-rl:rsl-rl"
    config = {**TestModel.config, "std_type": "log", "actor_normalization": True, "critic_normalization": True}
    around = {"env": HOVER, "loss": {"use": "rsl-rl:adaptive-ppo"}}


class TestLoss(LossContract):
    use = "rsl-rl:adaptive-ppo"
    around = {"env": HOVER, "model": {**SMALL, "critic_normalization": True}, "estimator": {"use": "ppo:gae"}}


class TestLossOfAnotherModel(LossContract):
    use = "rsl-rl:adaptive-ppo"
    around = {"model": {"use": "mlp", "hidden": [8]}, "estimator": {"use": "ppo:gae"}}


class TestEnvLog(HookContract):
    use = "rsl-rl:env-log"
    around = {"env": HOVER, "model": SMALL, "collector": {"use": "device", "frames_per_batch": 16}}


@pytest.mark.skipif(find_spec("rsl_rl") is None, reason="rsl-rl-lib is not installed")
def test_the_env_of_these_tests_is_one_of_rsl_rl():
    from rsl_rl.env import VecEnv

    assert isinstance(Hover(2), VecEnv)


def test_the_example_learns(tmp_path):
    config = rlcore.load_config(EXAMPLE, [f"run.folder='{tmp_path}'", "run.device='cpu'"])
    trainer = rlcore.build(config).trainer
    trainer.train()
    assert trainer.last_evaluation.mean_return > 33
    assert 0 < trainer.metrics.latest["distance"] < 1
    assert trainer.metrics.latest["Episode/limit"] == 50
    assert all(torch.isfinite(weight).all() for weight in trainer.model.parameters())
