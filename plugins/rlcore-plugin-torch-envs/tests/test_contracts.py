"""The contract of envs, and the rules of this one."""

from pathlib import Path

import numpy as np
from rlcore_plugin_testing.contracts import EnvContract, PluginContract

import rlcore

EXAMPLE = Path(__file__).with_name("example.toml")


class TestPlugin(PluginContract):
    plugin = "torch-envs"


class TestTorchEnvsEnv(EnvContract):
    use = "torch-envs"
    config = {"num_envs": 2, "cells": 4, "limit": 30}
    truncates = {"limit": 1, "cells": 100}

    def test_going_right_arrives_and_pays(self):
        env = self.env(num_envs=1)
        env.reset(seed=0)
        steps = []
        while not steps or not steps[-1].terminated[0]:
            steps.append(env.step(np.array([1])))
        assert len(steps) < 4
        assert [float(step.reward[0]) for step in steps] == [-0.01] * (len(steps) - 1) + [1.0]
        assert steps[-1].final_observation[0][0] == 1.0


def test_the_example_learns(tmp_path):
    config = rlcore.load_config(EXAMPLE, ["run.total_frames=10_240", f"run.folder='{tmp_path}'"])
    trainer = rlcore.build(config).trainer
    trainer.train()
    assert trainer.last_evaluation.mean_return > 0.9
