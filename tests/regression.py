"""A learner of one output with modules and batches for it, as scripts of RLlib have them."""

import os
import signal

import numpy as np
import torch

from rlcore import AlgorithmConfig, Columns, MultiRLModuleSpec, RLModule, RLModuleSpec, TorchLearner


class Linear(RLModule):
    def setup(self):
        self.net = torch.nn.Linear(3, self.model_config.get("outputs", 1))

    def _forward(self, batch):
        return {"output": self.net(batch[Columns.OBS])}


class Regression(TorchLearner):
    """The squared error; NaN targets make a step that is not finite, and rows with `kill` kill their process."""

    def compute_loss_for_module(self, *, module_id, config, batch, fwd_out):
        if "kill" in batch and batch["kill"].any():
            os.kill(os.getpid(), signal.SIGKILL)
        error = (fwd_out["output"].squeeze(-1) - batch["target"]).square().mean()
        self.metrics.log_value((module_id, "error"), error)
        return error


def config_of(*ids, learner_class=Regression, **settings):
    """Return a config of a learner of linear modules of these names."""
    config = AlgorithmConfig(learner_class=learner_class, lr=0.1, seed=3).training(**settings)
    spec = MultiRLModuleSpec({name: RLModuleSpec(Linear) for name in ids or ("default_policy",)})
    return config.rl_module(rl_module_spec=spec)


def rows(count, seed=0):
    """Return a batch of so many rows."""
    generator = np.random.default_rng(seed)
    return {Columns.OBS: generator.normal(size=(count, 3)), "target": generator.normal(size=count)}
