"""The contract of losses, and the values of this one."""

from pathlib import Path

import pytest
from rlcore_plugin_testing.contracts import LossContract, PluginContract
from rlcore_plugin_testing.contracts.data import minibatch

import rlcore

EXAMPLE = Path(__file__).with_name("example.toml")


class TestPlugin(PluginContract):
    plugin = "dreamer"


class TestDreamerLoss(LossContract):
    use = "dreamer"

    def test_the_coefficients_weigh_their_terms(self):
        context = self.bench()
        entries = minibatch(context)
        once = self.make(context, critic_coef=1.0, entropy_coef=1.0)(entries)
        twice = self.make(context, critic_coef=2.0, entropy_coef=2.0)(entries)
        for name, factor in (("loss_actor", 1), ("loss_critic", 2), ("loss_entropy", 2)):
            assert twice[name].item() == pytest.approx(factor * once[name].item())
        assert once["loss_entropy"].item() == pytest.approx(-once["entropy"].item())


def test_the_example_trains(tmp_path):
    config = rlcore.load_config(EXAMPLE, ["run.total_frames=1_024", f"run.folder='{tmp_path}'"])
    assert rlcore.build(config).trainer.train().frames == 1024
