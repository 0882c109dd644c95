"""The scale of rewards: by the deviation of the returns and by the largest, over ends and batches."""

import numpy as np
import pytest
import torch
from rlcore_plugin_flashsac.return_scale import ReturnScale, RewardScale

from rlcore.types import Context


def of(rewards, ends, largest_return=5.0, transform=None):
    """Return the scale after a batch, and the transform.

    Args:
        rewards: `[env, time]`.
        ends: `[env, time]`.
        largest_return: that scaled returns may have.
        transform: of batches before; None for a new one.
    """
    transform = transform or ReturnScale(ReturnScale.Config(gamma=0.5), Context.alone("test"))
    scale = RewardScale()
    transform.fill(scale, largest_return)
    batch = {("next", "reward"): rewards, ("next", "done"): ends}
    transform.batch(Batch({key: value.unsqueeze(-1) for key, value in batch.items()}, rewards.shape))
    return scale.value.item(), transform


class Batch(dict):
    """Entries `[env, time, 1]` with a size."""

    def __init__(self, entries, size):
        super().__init__(entries)
        self.batch_size = size


def test_returns_go_on_from_step_to_step_and_begin_again_after_an_end():
    rewards = torch.tensor([[1.0, 1.0, 1.0, 1.0]])
    scale, _ = of(rewards, torch.tensor([[False, False, True, False]]), largest_return=1e9)
    assert scale == pytest.approx(np.std([1.0, 1.5, 1.75, 1.0]), rel=1e-6)


def test_the_largest_return_fits_the_support():
    rewards = torch.tensor([[0.0, -40.0, 0.0]])
    scale, _ = of(rewards, torch.zeros(1, 3, dtype=torch.bool), largest_return=2.0)
    assert scale == 20.0


def test_a_restored_transform_goes_on_from_the_middle_of_an_episode():
    rewards, going = torch.tensor([[3.0, 1.0]]), torch.zeros(1, 2, dtype=torch.bool)
    _, first = of(rewards, going)
    restored = ReturnScale(ReturnScale.Config(gamma=0.5), Context.alone("test"))
    restored.load_state_dict(first.state_dict())
    assert of(rewards, going, transform=restored)[0] == of(rewards, going, transform=first)[0]


def test_a_frozen_copy_learns_nothing():
    rewards, going = torch.tensor([[3.0, 1.0]]), torch.zeros(1, 2, dtype=torch.bool)
    scale, transform = of(rewards, going)
    assert of(rewards * 9, going, transform=transform.frozen())[0] == scale
