"""What TorchRL's discrete SAC learns on CartPole with the settings of examples/discrete-sac-cartpole.toml.

One JSON line gives the mean return of the last 100 training episodes, and the seconds that training took. The error of
its critics is the squared one instead of half of it, which Adam does not tell apart.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import deque
from typing import Any

import torch
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.envs import EnvBase, RewardSum, TransformedEnv
from torchrl.envs.libs.gym import GymEnv
from torchrl.modules import MLP, ProbabilisticActor
from torchrl.objectives import DiscreteSACLoss, SoftUpdate

RANDOM_FRAMES = 1_000
FRAMES_PER_BATCH = 8
UPDATES_PER_BATCH = 4
LEARNING_RATE = 3e-4


def network() -> MLP:
    """Make a network from the four numbers of an observation to one for each of the two actions."""
    return MLP(in_features=4, out_features=2, num_cells=[128, 128], activation_class=nn.ReLU)


def make_loss(env: EnvBase) -> tuple[ProbabilisticActor, DiscreteSACLoss, list[torch.optim.Adam]]:
    """Make the actor, the loss of actor, two critics and temperature, and their optimizers."""
    actor = ProbabilisticActor(
        TensorDictModule(network(), in_keys=["observation"], out_keys=["logits"]),
        spec=env.action_spec,
        in_keys=["logits"],
        distribution_class=torch.distributions.Categorical,
    )
    critic = TensorDictModule(network(), in_keys=["observation"], out_keys=["action_value"])
    loss = DiscreteSACLoss(
        actor,
        critic,
        action_space="categorical",
        num_actions=2,
        loss_function="l2",
        target_entropy_weight=0.2,
    )
    loss.make_value_estimator(gamma=0.99)
    groups: list[Any] = [
        list(loss.actor_network_params.flatten_keys().values()),
        list(loss.qvalue_network_params.flatten_keys().values()),
        [loss.log_alpha],
    ]
    return actor, loss, [torch.optim.Adam(group, LEARNING_RATE) for group in groups]


def train(seed: int, frames: int) -> dict[str, list[float]]:
    """Train; return the curve: the mean return of the last 100 episodes at a hundred places."""
    env = TransformedEnv(GymEnv("CartPole-v1", categorical_action_encoding=True), RewardSum())
    env.set_seed(seed)
    actor, loss, optimizers = make_loss(env)
    target = SoftUpdate(loss, tau=0.005)
    buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(100_000), batch_size=128)
    collector = Collector(
        env, actor, frames_per_batch=FRAMES_PER_BATCH, total_frames=frames, init_random_frames=RANDOM_FRAMES
    )
    returns: deque[float] = deque(maxlen=100)
    curve: dict[str, list[float]] = {"at": [], "return": [], "seconds": []}
    began, done = time.perf_counter(), 0
    for batch in collector:
        before, done = done, done + batch.numel()
        batch = batch.reshape(-1)
        returns.extend(batch["next", "episode_reward"][batch["next", "done"]].tolist())
        buffer.extend(batch)
        if returns and done * 100 // frames > before * 100 // frames:
            curve["at"].append(done)
            curve["return"].append(statistics.fmean(returns))
            curve["seconds"].append(round(time.perf_counter() - began, 1))
        if len(buffer) < RANDOM_FRAMES:
            continue
        for _ in range(UPDATES_PER_BATCH):
            losses = loss(buffer.sample())
            (losses["loss_actor"] + losses["loss_qvalue"] + losses["loss_alpha"]).backward()
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()
            target.step()
    collector.shutdown()
    return curve


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--frames", type=int, default=100_000)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    started = time.perf_counter()
    curve = train(args.seed, args.frames)
    seconds = round(time.perf_counter() - started, 1)
    found = {"peer": "torchrl", "task": "discrete-sac-cartpole", "seed": args.seed, "train_s": seconds}
    print(json.dumps({**found, "mean": curve["return"][-1], "frames": args.frames, "curve": curve}))


if __name__ == "__main__":
    main()
