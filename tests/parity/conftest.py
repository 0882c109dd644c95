"""The same batches, losses and trainers for TorchRL and for rlcore."""

from __future__ import annotations

import warnings

import pytest
import torch
from tensordict import TensorDict

torchrl = pytest.importorskip("torchrl", reason="pip install rlcore[parity]")

import rlcore  # noqa: E402


@pytest.fixture(autouse=True)
def _deprecations():
    """Both are used as scripts do, and some of it is deprecated there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def make_batch(*size, seed=0, mask=None):
    """A batch with numbered steps, rewards and ends."""
    generator = torch.Generator().manual_seed(seed)
    steps = torch.Size(size).numel()
    batch = TensorDict(
        {
            "observation": torch.randn((*size, 3), generator=generator),
            "action": torch.randn((*size, 1), generator=generator),
            "number": torch.arange(100 * seed, 100 * seed + steps).reshape(size),
            "next": {
                "reward": torch.randn((*size, 1), generator=generator),
                "done": torch.zeros((*size, 1), dtype=torch.bool),
                "truncated": torch.zeros((*size, 1), dtype=torch.bool),
            },
        },
        batch_size=size,
    )
    if mask is not None:
        batch.set(("collector", "mask"), torch.tensor(mask, dtype=torch.bool))
    return batch


class Collector(list):
    """An iterable of batches with what TorchRL's trainer asks of a collector."""

    init_random_frames = 0

    def set_seed(self, seed, static_seed=False):
        self.seed = seed
        return seed

    def shutdown(self):
        pass

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass

    def update_policy_weights_(self, *args, **kwargs):
        pass


class Loss(torch.nn.Module):
    """A loss over a linear layer, as a TensorDict."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.layer = torch.nn.Linear(3, 1)

    def forward(self, batch):
        value = self.layer(batch["observation"])
        return TensorDict(
            {"loss_value": (value - 1).pow(2).mean(), "loss_size": value.abs().mean() * 0.1, "level": value.mean()}
        )


class Rows:
    """A logger of both, which keeps what it is given."""

    def __init__(self):
        self.rows = []

    def log_scalar(self, name, value, step=None):
        self.rows.append((step, name, float(value)))


@pytest.fixture(params=["rlcore", "torchrl"])
def library(request):
    """Either library."""
    return request.param


def trainer_of(library, batches, **arguments):
    """Return a trainer of a library over batches."""
    import torchrl.trainers

    defaults = {
        "loss_module": Loss(),
        "total_frames": 1_000_000,
        "frame_skip": 1,
        "optim_steps_per_batch": 1,
        "progress_bar": False,
        "optimizer": None,
        "log_interval": 1,
    }
    kind = {"rlcore": rlcore.Trainer, "torchrl": torchrl.trainers.Trainer}[library]
    return kind(**{"collector": Collector(batches), **defaults, **arguments})


@pytest.fixture
def batch():
    return make_batch


@pytest.fixture
def make_trainer():
    return trainer_of


@pytest.fixture
def make_rows():
    return Rows
