"""PPO on the inverted double pendulum, part by part, with the training loop in hand.

    python ppo_tutorial.py
    python ppo_tutorial.py --frames 5_000 --out short.png

docs/tutorial/ppo.md explains each section.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import matplotlib.pyplot as plt
import torch

from rlcore import ExplorationType, Factory, check_env_specs, set_exploration_type

parser = argparse.ArgumentParser()
parser.add_argument("--frames", type=int, default=50_000, help="environment frames to train for")
parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".png"), help="where the picture goes")
options = parser.parse_args()

# Hyper-parameters
device = "cuda" if torch.cuda.is_available() else "cpu"
num_cells = 256  # units of each hidden layer
lr = 3e-4
max_grad_norm = 1.0

frames_per_batch = 1000
total_frames = options.frames  # 1_000_000 for a complete training

sub_batch_size = 64
num_epochs = 10
clip_epsilon = 0.2
gamma = 0.99
lmbda = 0.95
entropy_eps = 1e-4

# The environment and its transforms
make = Factory(total_frames=total_frames, seed=1, device=device)
env = make.env("gymnasium", id="InvertedDoublePendulum-v5")
make.transform("gymnasium:observation-norm", frames=1000)
make.transform("transforms:double-to-float")
make.transform("transforms:step-counter")

print("normalisation constants:", env.transform[0].loc.shape)
print("observation space:", env.observation_space)
print("action space:", env.action_space)

check_env_specs(env)
rollout = env.rollout(3)
print("rollout of three steps:", rollout)

# Policy and value
model = make.model("mlp", parts=["actor", "critic"], hidden=[num_cells] * 3, activation="tanh")
with torch.no_grad():
    print("running the policy:", model.policy.mode(rollout["observation"][:, 0]))
    print("running the value:", model.critic(rollout["observation"][:, 0]))

# Collector, buffer, advantage and loss
make.collector(frames_per_batch=frames_per_batch)
make.buffer(epochs=num_epochs, minibatch_size=sub_batch_size)
make.estimator("ppo:gae", gamma=gamma, lmbda=lmbda, every="epoch", standardise=True)
make.loss("ppo", clip_epsilon=clip_epsilon, entropy_coef=entropy_eps, critic_coef=1.0, critic_loss="smooth_l1")

optimizer = make.optimizer("adam", lr=lr)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(1, total_frames // frames_per_batch))

# The training loop
evaluator = make.evaluator(episodes=10, at_start=False)
before = evaluator.evaluate()
trainer = make.trainer(optimizer=optimizer, clip_norm=max_grad_norm, progress_bar=False)
logs: dict[str, list[float]] = defaultdict(list)

for progress in trainer:
    batch = trainer.batch
    logs["frames"].append(progress.frames)
    logs["reward"].append(batch["next", "reward"].mean().item())
    logs["step_count"].append(batch["step_count"].max().item())
    logs["lr"].append(scheduler.get_last_lr()[0])
    if progress.iterations % 10 == 1:
        with set_exploration_type(ExplorationType.DETERMINISTIC):
            test = env.rollout(1000, model.policy)
        logs["test frames"].append(progress.frames)
        logs["test return"].append(test["next", "reward"].sum().item())
        logs["test step_count"].append(test["step_count"].max().item())
        print(
            f"{progress.frames:6,} frames: "
            f"test return {logs['test return'][-1]:8.1f} (first {logs['test return'][0]:.1f}), "
            f"test step count {logs['test step_count'][-1]:4}, "
            f"average reward {logs['reward'][-1]:.4f} (first {logs['reward'][0]:.4f}), "
            f"max step count {logs['step_count'][-1]:4}, lr {logs['lr'][-1]:.4f}"
        )
    scheduler.step()

# Results
plt.switch_backend("Agg")
panels = {
    "training rewards (average)": ("frames", "reward"),
    "Max step count (training)": ("frames", "step_count"),
    "Return (test)": ("test frames", "test return"),
    "Max step count (test)": ("test frames", "test step_count"),
}
figure, axes = plt.subplots(2, 2, figsize=(10, 8), layout="constrained")
for axis, (title, (frames, key)) in zip(axes.flat, panels.items(), strict=True):
    axis.plot(logs[frames], logs[key])
    axis.set_title(title)
    axis.set_xlabel("frames")
figure.savefig(options.out)

after = trainer.last_evaluation
print(f"average reward: {logs['reward'][0]:.4f} in the first batch, {logs['reward'][-1]:.4f} in the last")
print(f"mean return over ten episodes: {before.mean_return:.1f} before training, {after.mean_return:.1f} after")
print("curves:", options.out)
