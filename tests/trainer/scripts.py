"""What the tests of scripted trainers share: batches, a small loss, and trainers over them."""

from __future__ import annotations

import torch
from tensordict import TensorDict
from torch import nn

from rlcore import Trainer

ENVS, STEPS = 2, 8


class Batches:
    """Yields batches `[env, time]` that depend on their number alone, and goes on where it was saved."""

    def __init__(self, count=100, seed=0):
        self.count, self.seed, self.position = count, seed, 0
        self.closed = 0

    def __iter__(self):
        while self.position < self.count:
            self.position += 1
            yield make_batch(self.seed + self.position)

    def state_dict(self):
        return {"position": self.position}

    def load_state_dict(self, state):
        self.position = state["position"]

    def shutdown(self):
        self.closed += 1


def make_batch(seed, envs=ENVS, steps=STEPS):
    generator = torch.Generator().manual_seed(seed)
    done = torch.zeros(envs, steps, 1, dtype=torch.bool)
    done[0, steps // 2] = True
    return TensorDict(
        {
            "observation": torch.randn(envs, steps, 3, generator=generator),
            "action": torch.randn(envs, steps, 1, generator=generator),
            "next": {
                "observation": torch.randn(envs, steps, 3, generator=generator),
                "reward": torch.ones(envs, steps, 1),
                "done": done,
                "terminated": done.clone(),
                "truncated": torch.zeros_like(done),
            },
        },
        batch_size=[envs, steps],
    )


class Regression(nn.Module):
    """Predicts the action from the observation; its loss is a TensorDict, as TorchRL's are."""

    def __init__(self, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.actor = nn.Linear(3, 1)
        self.critic = nn.Linear(3, 1)

    def forward(self, batch):
        actor = (self.actor(batch["observation"]) - batch["action"]).square().mean()
        critic = (self.critic(batch["observation"]) - batch["next", "reward"]).square().mean()
        return TensorDict({"loss_actor": actor, "loss_critic": critic, "error": actor.detach().sqrt()}, batch_size=[])


def make(collector=None, loss=None, optimizer="adam", **arguments):
    """Return a trainer over batches of 16 frames, without a progress bar."""
    loss = loss or Regression()
    if optimizer == "adam":
        optimizer = torch.optim.Adam(loss.parameters(), lr=1e-2)
    defaults = {"total_frames": 64, "frame_skip": 1, "optim_steps_per_batch": 2, "progress_bar": False}
    return Trainer(
        collector=collector if collector is not None else Batches(),
        loss_module=loss,
        optimizer=optimizer,
        **{**defaults, **arguments},
    )


def weights(trainer):
    return {name: value.clone() for name, value in trainer.loss_module.state_dict().items()}


class Rows:
    """A logger with `log_scalar` alone."""

    def __init__(self):
        self.rows = []

    def log_scalar(self, name, value, step=None):
        self.rows.append((name, value, step))

    def of(self, name):
        return [(value, step) for key, value, step in self.rows if key == name]
