"""The buffer from offline to online: its shares, the updates before the others, and what a resume takes back."""

import pytest
import torch
from rlcore_plugin_datasets.dataset import write_dataset
from rlcore_plugin_datasets.mixed import MixedBuffer
from rlcore_plugin_testing.contracts.data import made_up
from rlcore_plugin_testing.small_run import make_run

from rlcore import ConfigError

from . import test_contracts
from .test_contracts import SPACES, toy_episodes

FRESH = 1000.0


@pytest.fixture
def data(tmp_path):
    return write_dataset(tmp_path / "toy", SPACES, toy_episodes(), {})


def make(data, **keys):
    sections = {**test_contracts.TestMixed.around, "hook": [{"use": "testing:toy"}]}
    context = make_run(sections=sections).trainer.hooks.hooks[0].instance.context.for_component("buffer", "mixed")
    settings = {"path": str(data.folder), "minibatch_size": 10, "capacity": 40, "warmup_frames": 7, **keys}
    return MixedBuffer(MixedBuffer.Config(**settings), context), context


def batch(context):
    """Return a batch whose rewards are those of no data."""
    nothing = torch.zeros(2, 8, dtype=torch.bool)
    found = made_up(context, nothing, nothing)
    found["next", "reward"] = torch.full((2, 8, 1), FRESH)
    return found


def fresh(minibatch):
    return (minibatch["next", "reward"] == FRESH).squeeze(-1).tolist()


@pytest.mark.parametrize(("share", "rows"), [(0.5, 5), (0.25, 2), (0.999, 9), (0.001, 1)])
def test_a_fixed_share_of_each_minibatch_comes_from_the_data(data, share, rows):
    buffer, context = make(data, share=share, updates_per_batch=3)
    assert all(not any(fresh(found)) for found in buffer.minibatches(batch(context))), "nothing was collected yet"
    buffer.add(batch(context))
    for found in buffer.minibatches(batch(context)):
        assert fresh(found) == [False] * rows + [True] * (10 - rows)
    assert len(buffer) == 60 + 16


def test_updates_from_the_data_alone_come_first_and_are_counted(data):
    buffer, context = make(data, offline_updates=5, offline_updates_per_batch=3)
    seen = []
    for _ in range(4):
        buffer.add(batch(context))
        seen.append((buffer.warmup_frames, [sum(fresh(found)) for found in buffer.minibatches(batch(context))]))
    assert seen == [(0, [0, 0, 0]), (0, [0, 0]), (7, [5]), (7, [5])]


@pytest.mark.parametrize("save", ["full", "none"])
def test_a_resume_in_the_middle_of_them_makes_the_rest(data, save):
    keys = {"offline_updates": 5, "offline_updates_per_batch": 3, "save": save}
    buffer, context = make(data, **keys)
    buffer.add(batch(context))
    list(buffer.minibatches(batch(context)))
    again, _ = make(data, **keys)
    again.load_state_dict(buffer.state_dict())
    assert len(again) == (76 if save == "full" else 60)
    for one in (buffer, again):
        one.add(batch(context))
    first, second = ([found.to_tensordict() for found in one.minibatches(batch(context))] for one in (buffer, again))
    assert len(first) == 2
    assert all((a == b).all() for a, b in zip(first, second, strict=True))


def test_what_cannot_be_mixed_is_refused(data, tmp_path):
    with pytest.raises(ConfigError, match="has no room for samples of both kinds"):
        make(data, minibatch_size=1)
    with pytest.raises(ConfigError, match="takes 80 transitions, which is more than the 60"):
        make(data, minibatch_size=160)
    other = write_dataset(tmp_path / "other", SPACES, toy_episodes(7), {})
    with pytest.raises(ConfigError, match="the checkpoint was trained on"):
        make(other)[0].load_state_dict(make(data)[0].state_dict())
