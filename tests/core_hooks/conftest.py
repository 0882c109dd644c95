"""A small trainer over batches that a test makes itself."""

from __future__ import annotations

import pytest
import torch
from tensordict import TensorDict

import rlcore
from tests.promised import guard_hooks


@pytest.fixture(autouse=True)
def _only_what_is_promised(monkeypatch):
    """Every hook of these tests gets a trainer that offers what `rlcore.types.trainer` promises, and nothing else."""
    guard_hooks(monkeypatch)


class Loss(torch.nn.Module):
    """The squared error of a linear function of the observations."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.actor = torch.nn.Linear(3, 1)

    def forward(self, batch):
        return {"loss_square": self.actor(batch["observation"]).pow(2).mean(), "entropy": torch.tensor(1.0)}


def make_batch(*size, seed=0, **entries):
    """A batch with observations `[*size, 3]`, rewards and ends."""
    generator = torch.Generator().manual_seed(seed)
    numbers = torch.arange(torch.Size(size).numel()).reshape(size)
    batch = TensorDict(
        {
            "observation": torch.randn((*size, 3), generator=generator),
            "action": torch.randn((*size, 1), generator=generator),
            "number": numbers,
            "next": {
                "reward": torch.randn((*size, 1), generator=generator),
                "done": torch.zeros((*size, 1), dtype=torch.bool),
                "truncated": torch.zeros((*size, 1), dtype=torch.bool),
            },
        },
        batch_size=size,
    )
    for key, value in entries.items():
        batch.set(key, value)
    return batch


def with_mask(batch, mask):
    """The batch with a mask of valid steps."""
    return batch.set(("collector", "mask"), torch.as_tensor(mask, dtype=torch.bool))


@pytest.fixture
def batch():
    return make_batch


@pytest.fixture
def masked():
    return with_mask


@pytest.fixture
def make_trainer():
    """Return a function that builds a trainer; its arguments are those of `Trainer`."""

    def make(batches=(), **arguments):
        loss = arguments.pop("loss_module", None) or Loss()
        defaults = {"total_frames": 10_000, "optim_steps_per_batch": 1, "progress_bar": False, "log_interval": 1}
        return rlcore.Trainer(collector=list(batches), loss_module=loss, **{**defaults, **arguments})

    return make


class Rows:
    """A logger that keeps what it is given."""

    def __init__(self):
        self.rows = []

    def log_metrics(self, metrics, step):
        self.rows.append((step, dict(metrics)))


@pytest.fixture
def rows():
    return Rows()
