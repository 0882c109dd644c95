"""A script for TorchRL's trainer runs on rlcore's after a change of its imports, and learns the same."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("torchrl")

SCRIPT = """
import torch
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.data.replay_buffers.samplers import SamplerWithoutReplacement
from torchrl.envs import GymEnv, StepCounter, TransformedEnv
from torchrl.modules import OneHotCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

from PACKAGE import (
    ClearCudaCache,
    CountFramesLog,
    LogScalar,
    LRSchedulerHook,
    ReplayBufferTrainer,
    Trainer,
    UpdateWeights,
    ValueEstimatorHook,
)

torch.manual_seed(0)
env = TransformedEnv(GymEnv("CartPole-v1"), StepCounter())
env.set_seed(0)
actor = ProbabilisticActor(
    TensorDictModule(nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2)), ["observation"], ["logits"]),
    in_keys=["logits"],
    distribution_class=OneHotCategorical,
    return_log_prob=True,
)
critic = ValueOperator(nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1)), in_keys=["observation"])
loss = ClipPPOLoss(actor, critic, entropy_coeff=1e-3)
collector = Collector(env, actor, frames_per_batch=64, total_frames=-1)
buffer = TensorDictReplayBuffer(
    storage=LazyTensorStorage(64), sampler=SamplerWithoutReplacement(), batch_size=16
)
optimizer = torch.optim.Adam(loss.parameters(), lr=1e-3)
rows = []


class Logger:
    def log_scalar(self, name, value, step=None):
        rows.append((name, float(value), step))


trainer = Trainer(
    collector=collector,
    total_frames=256,
    frame_skip=1,
    optim_steps_per_batch=4,
    loss_module=loss,
    optimizer=optimizer,
    logger=Logger(),
    clip_norm=0.5,
    num_epochs=2,
    progress_bar=False,
    seed=1,
    log_interval=1,
)
gae = GAE(gamma=0.99, lmbda=0.95, value_network=critic)
ValueEstimatorHook(gae).register(trainer)
replay = ReplayBufferTrainer(buffer, flatten_tensordicts=True)
trainer.register_op("batch_process", lambda batch: gae(batch))
trainer.register_op("batch_process", replay.extend)
trainer.register_op("process_optim_batch", replay.sample)
trainer.register_module("replay_buffer", replay)
LRSchedulerHook(torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.9), interval="batch").register(trainer)
CountFramesLog(frame_skip=1).register(trainer)
LogScalar(("next", "reward"), "reward").register(trainer)
ClearCudaCache(1).register(trainer)
UpdateWeights(collector, 1).register(trainer)
trainer.train()
weights = {name: value.detach().clone() for name, value in loss.state_dict().items()}
"""


def run(package):
    names = {}
    exec(SCRIPT.replace("PACKAGE", package), names)
    return names


@pytest.mark.filterwarnings("ignore")
def test_the_same_script_learns_the_same_with_either_trainer():
    theirs, ours = run("torchrl.trainers"), run("rlcore")
    assert ours["trainer"].collected_frames == theirs["trainer"].collected_frames == 256
    for name, value in theirs["weights"].items():
        torch.testing.assert_close(ours["weights"][name], value, rtol=1e-4, atol=1e-6)
    assert ours["optimizer"].param_groups[0]["lr"] == theirs["optimizer"].param_groups[0]["lr"]
    names = {name for name, _, _ in ours["rows"]}
    assert {name for name, _, _ in theirs["rows"]} - names == set()
