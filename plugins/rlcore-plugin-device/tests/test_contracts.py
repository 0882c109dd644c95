"""The contracts of the plugin, of envs as functions, and what the collector keeps over a resume."""

from pathlib import Path

import pytest
import torch
from rlcore_plugin_device.contracts import TensorEnvContract, WithoutTheHost
from rlcore_plugin_testing.contracts import PluginContract
from rlcore_plugin_testing.contracts.base import StateContract

import rlcore
from rlcore.errors import RlcoreError

from .reach import Reach
from .tensor_envs import Blank, Noisy, Shown

EXAMPLE = Path(__file__).with_name("example.toml")


class TestPlugin(PluginContract):
    plugin = "device"


class TestReach(TensorEnvContract):
    target = Reach
    around = {"model": {"use": "mlp"}}
    terminates = None
    truncates = {}


class TestNoisy(TensorEnvContract):
    target = Noisy
    around = {"model": {"use": "mlp"}}
    terminates = None
    truncates = {}


class TestShown(TensorEnvContract):
    target = Shown
    around = {"model": {"use": "mlp"}}
    terminates = None
    truncates = {}


class TestDeviceCollector(StateContract):
    kind = "collector"
    use = "device"
    config = {"frames_per_batch": 64}
    around = {
        "env": {"use": "torch-envs", "id": "CartPole-v1", "num_envs": 4},
        "model": {"use": "mlp", "hidden": [8]},
        "loss": {"use": "ppo"},
        "estimator": {"use": "gae"},
        "run": {"name": "toy", "seed": 1, "total_frames": 256, "device": "cpu"},
    }

    def exercise(self, component, context):
        for _ in range(2):
            component.collect()

    def behaviour(self, component, context):
        batch = component.collect().clone().flatten_keys(".").to_dict()
        return {"batch": batch, "episodes": [episode._asdict() for episode in component.episodes()]}


class TestDeviceCollectorWithMemory(TestDeviceCollector):
    around = {
        **TestDeviceCollector.around,
        "model": {"use": "recurrent:lstm", "size": 8},
        "buffer": {"use": "rollout-sequences", "minibatch_size": 16, "sequence_length": 8},
    }


@pytest.mark.parametrize(
    "waits",
    [
        lambda tensor: tensor.sum().item(),
        lambda tensor: bool((tensor > 0).all()),
        lambda tensor: tensor[tensor > 0],
        lambda tensor: tensor.nonzero(),
    ],
)
def test_what_waits_for_the_device_is_told(waits):
    """Else the contract would prove nothing."""
    tensor = torch.arange(3.0)
    with WithoutTheHost(), pytest.raises(AssertionError, match="waits for the device"):
        waits(tensor)
    with WithoutTheHost():
        torch.where(tensor > 0, tensor, 0)[torch.tensor([0, 1])]


def test_the_page_shows_the_env_of_these_tests():
    page = Path(__file__).parents[3] / "docs" / "howto" / "env-of-tensors.md"
    source = Path(__file__).with_name("reach.py").read_text()
    assert f"```python file=reach.py\n{source}```" in page.read_text()


@pytest.mark.parametrize(("kind", "expected"), [(Reach, "render_mode"), (Blank, "Blank has no method pictures")])
def test_videos_of_an_env_without_pictures_are_refused_before_the_first_frame(kind, expected, tmp_path):
    hook = {"use": "video:video", "required": True}
    bench = TensorEnvContract.of("testing:toy", around={**TestDeviceCollector.around, "hook": [hook]})
    bench.target = kind
    trainer = bench.run(tmp_path, changes={"num_envs": 4}).trainer
    with pytest.raises(RlcoreError, match=expected):
        trainer.train()
    assert trainer.progress.frames == 0


def test_the_example_learns(tmp_path):
    config = rlcore.load_config(EXAMPLE, [f"run.folder='{tmp_path}'"])
    run = rlcore.build(config)
    run.trainer.train()
    assert run.trainer.last_evaluation.mean_return > -20
