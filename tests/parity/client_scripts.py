"""Scripts as users of TorchRL's trainer write them, run with that trainer and with rlcore's, killed and resumed.

    python tests/parity/client_scripts.py [dqn] [ddpg] [redq]

prints, for each script, how far the weights at the end are from those of TorchRL's uninterrupted run: of rlcore's
uninterrupted run, of rlcore's run that was killed by SIGKILL and resumed, and of TorchRL's own run that was killed and
resumed. It fails unless the first two are 0.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import torch
from tensordict.nn import TensorDictModule, TensorDictSequential
from torch import nn
from torchrl.collectors import Collector
from torchrl.data import LazyMemmapStorage, LazyTensorStorage, TensorDictReplayBuffer
from torchrl.envs import DoubleToFloat, GymEnv, StepCounter, TransformedEnv
from torchrl.modules import (
    AdditiveGaussianModule,
    EGreedyModule,
    NormalParamExtractor,
    ProbabilisticActor,
    QValueActor,
    TanhNormal,
    ValueOperator,
)
from torchrl.objectives import DDPGLoss, DQNLoss, REDQLoss, SoftUpdate

FRAMES, BATCH = 1000, 50
KILLS = (7, 14)  # batches at which a run is killed; checkpoints are made at every fourth
FOLDERS = {"rlcore": "checkpoints", "torchrl.trainers": "trainer.pt"}


class Seeded(GymEnv):
    """An env whose resets take their seeds from torch's generator, so that they are part of what is saved."""

    def _reset(self, tensordict=None, **arguments):
        return super()._reset(tensordict, seed=int(torch.randint(2**31, ())), **arguments)


def collect(name, policy):
    env = TransformedEnv(Seeded(name), DoubleToFloat()).append_transform(StepCounter(40))
    return Collector(env, policy, frames_per_batch=BATCH, total_frames=-1, reset_at_each_iter=True)


def net(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 24), nn.ReLU(), nn.Linear(24, outputs))


class Value(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = net(4, 1)

    def forward(self, observation, action):
        return self.net(torch.cat([observation, action], -1))


def adam(parameters):
    return torch.optim.Adam(parameters, lr=1e-3, fused=True)


def trainer_of(package, place, collector, loss, **arguments):
    """The trainer, with what all scripts register; checkpoints go to `place`."""
    if package.__name__ != "rlcore" and place is not None:
        os.environ["CKPT_BACKEND"] = "torch"
    trainer = package.Trainer(
        collector=collector,
        total_frames=FRAMES,
        frame_skip=1,
        optim_steps_per_batch=4,
        loss_module=loss,
        progress_bar=False,
        log_interval=200,
        save_trainer_interval=4 * BATCH,
        save_trainer_file=place,
        **{"optimizer": None, **arguments},
    )
    package.CountFramesLog(frame_skip=1).register(trainer)
    package.LogScalar(("next", "reward"), "r_training", log_pbar=True).register(trainer)
    return trainer


def dqn(package, place):
    """Deep Q-learning on vectors: hooks register themselves, exploration decays with each batch."""
    value = QValueActor(net(4, 2), in_keys=["observation"], action_space="one-hot")
    env = GymEnv("CartPole-v1")
    greedy = EGreedyModule(env.action_spec, eps_init=1.0, eps_end=0.1, annealing_num_steps=1000)
    policy = TensorDictSequential(value, greedy)
    loss = DQNLoss(value, delay_value=True, action_space=env.action_spec)
    updater = SoftUpdate(loss, eps=0.95)
    collecting = collect("CartPole-v1", policy)
    trainer = trainer_of(package, place, collecting, loss, optimizer=adam(loss.parameters()))
    buffer = TensorDictReplayBuffer(storage=LazyMemmapStorage(1000), batch_size=32)
    package.ReplayBufferTrainer(buffer, flatten_tensordicts=True).register(trainer)
    trainer.register_op("post_optim", updater.step)
    trainer.register_op("post_steps", greedy.step, frames=BATCH)
    trainer.register_module("exploration", greedy)
    package.UpdateWeights(collecting, 1).register(trainer)
    return trainer


def ddpg(package, place):
    """Deterministic policy gradient: an optimizer for each of the two losses."""
    actor = TensorDictModule(nn.Sequential(net(3, 1), nn.Tanh()), ["observation"], ["action"])
    spec = GymEnv("Pendulum-v1").action_spec
    noise = AdditiveGaussianModule(spec, annealing_num_steps=1000)
    loss = DDPGLoss(actor, ValueOperator(Value(), in_keys=["observation", "action"]), delay_actor=True)
    loss.make_value_estimator(gamma=0.98)
    collecting = collect("Pendulum-v1", TensorDictSequential(actor, noise))
    trainer = trainer_of(package, place, collecting, loss)
    for key, part in (("loss_actor", loss.actor_network_params), ("loss_value", loss.value_network_params)):
        hook = package.OptimizerHook(adam(part.values(True, True)), loss_components=[key])
        hook.register(trainer, name=f"optimizer_{key}")
    replay = package.ReplayBufferTrainer(
        TensorDictReplayBuffer(storage=LazyTensorStorage(1000), batch_size=32), flatten_tensordicts=True
    )
    replay.register(trainer)
    trainer.register_op("post_optim", SoftUpdate(loss, eps=0.99).step)
    trainer.register_op("post_steps", noise.step, frames=BATCH)
    trainer.register_module("exploration", noise)
    package.UpdateWeights(collecting, 1).register(trainer)
    return trainer


def redq(package, place):
    """Randomised ensembled double Q-learning: every operation is registered by hand."""
    body = TensorDictModule(nn.Sequential(net(3, 2), NormalParamExtractor()), ["observation"], ["loc", "scale"])
    actor = ProbabilisticActor(
        body,
        in_keys=["loc", "scale"],
        distribution_class=TanhNormal,
        distribution_kwargs={"low": -2.0, "high": 2.0},
        return_log_prob=True,
        spec=GymEnv("Pendulum-v1").action_spec,
    )
    loss = REDQLoss(
        actor, ValueOperator(Value(), in_keys=["observation", "action"]), num_qvalue_nets=4, sub_sample_len=2
    )
    collecting = collect("Pendulum-v1", actor)
    trainer = trainer_of(package, place, collecting, loss, optimizer=adam(loss.parameters()))
    replay = package.ReplayBufferTrainer(
        TensorDictReplayBuffer(storage=LazyTensorStorage(1000), batch_size=32), flatten_tensordicts=True
    )
    trainer.register_op("batch_process", package.SelectKeys(["observation", "action", "next"]))
    trainer.register_op("batch_process", replay.extend)
    trainer.register_op("process_optim_batch", replay.sample)
    trainer.register_op("post_loss", replay.update_priority)
    trainer.register_op("post_optim", SoftUpdate(loss, eps=0.99).step)
    trainer.register_op("post_steps", package.UpdateWeights(collecting, 1))
    trainer.register_module("replay_buffer", replay)
    return trainer


SCRIPTS = {"dqn": dqn, "ddpg": ddpg, "redq": redq}


def run(package, name, place=None):
    """Run a script to its end, from its latest checkpoint where there is one; return the weights.

    At each batch it says so on its output, where the one who kills it listens.
    """
    torch.manual_seed(0)
    trainer = SCRIPTS[name](importlib.import_module(package), place)
    if place is not None:
        if Path(place).exists():
            trainer.load_from_file(place)
        trainer.register_op("post_steps", lambda: print("batch", trainer.collected_frames // BATCH, flush=True))
    trainer.train()
    return {key: value.detach().clone() for key, value in trainer.loss_module.state_dict().items()}


def run_killed(package, name, folder, kills=KILLS):
    """Run a script in processes that are killed at these batches, and in one that goes on to the end; the weights."""
    for batch in (*kills, None):
        command = [sys.executable, __file__, "--child", package, name, str(folder)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for line in child.stdout:
            if line.split() == ["batch", str(batch)]:
                child.kill()
                break
        _, said = child.communicate()
        if (batch is None) != (child.returncode == 0):
            raise RuntimeError(f"{package} {name}: ended with {child.returncode}\n{said[-2000:]}")
    return torch.load(folder / "weights.pt", weights_only=True)


def distance(left, right):
    """The largest difference of two sets of weights."""
    return max(float((left[key].double() - right[key].double()).abs().max()) for key in right)


def compare(name):
    """Run a script in all ways; return the distances from TorchRL's uninterrupted run."""
    reference = run("torchrl.trainers", name)
    found = {"rlcore, uninterrupted": distance(run("rlcore", name), reference)}
    for package, words in (("rlcore", "rlcore, killed twice"), ("torchrl.trainers", "torchrl, killed twice")):
        with tempfile.TemporaryDirectory() as folder:
            try:
                found[words] = distance(run_killed(package, name, Path(folder)), reference)
            except RuntimeError as error:
                found[words] = str(error).strip().splitlines()[-1]
    return found


def main(arguments):
    warnings.simplefilter("ignore")
    if arguments[:1] == ["--child"]:
        _, package, name, folder = arguments
        weights = run(package, name, str(Path(folder, FOLDERS[package])))
        torch.save(weights, Path(folder, "weights.pt"))
        return 0
    failed = False
    for name in arguments or SCRIPTS:
        for words, far in compare(name).items():
            print(f"{name:5} {words:22} {far}")
            failed |= words.startswith("rlcore") and far != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
