"""Samples that are trained on are in the asked proportion to the steps that were collected."""

from pathlib import Path

import pytest
import torch
from pydantic import ValidationError
from rlcore_plugin_replay.buffer import ReplayBuffer
from rlcore_plugin_replay.sequences import SequenceReplayBuffer
from rlcore_plugin_testing import check_resumed, make_trainer
from rlcore_plugin_testing.ranks import in_ranks
from tensordict import TensorDict

from rlcore import Context, Progress
from rlcore.types import MASK, RunInfo


def sections(**keys):
    return {
        "plugins": {"files": [str(Path(__file__).with_name("loose_parts.py"))]},
        "loss": {"use": "loose-parts:td"},
        "estimator": None,
        "buffer": {"use": "replay", "capacity": 40, "minibatch_size": 8, "warmup_frames": 16, **keys},
    }


def updates_after(buffer, batches):
    """Return how many minibatches there were after each batch."""
    counts = []
    for batch in batches:
        buffer.add(batch)
        counts.append(sum(1 for _ in buffer.minibatches(batch)))
    return torch.tensor(counts).cumsum(0).tolist()


def steps(count, masked=0):
    batch = TensorDict({"number": torch.arange(count)}, [count])
    if masked:
        batch[MASK] = (torch.arange(count) >= masked).unsqueeze(-1)
    return batch


@pytest.mark.parametrize("ratio", [0.1, 1.0, 3.7, 32.0, 100.0])
def test_what_one_batch_leaves_over_counts_in_the_next_so_that_nothing_adds_up(ratio):
    buffer = ReplayBuffer.of(capacity=100, minibatch_size=32, replay_ratio=ratio)
    counts = updates_after(buffer, [steps(10)] * 1000)
    assert counts == [int(10 * batch * ratio / 32) for batch in range(1, 1001)]


def test_masked_steps_are_no_steps():
    buffer = ReplayBuffer.of(capacity=100, minibatch_size=4, replay_ratio=1.0)
    assert updates_after(buffer, [steps(8, masked=4)] * 3) == [1, 2, 3]


def test_an_update_on_sequences_trains_on_all_of_their_steps():
    config = SequenceReplayBuffer.Config(minibatch_size=3, sequence_length=5, replay_ratio=1.0)
    assert config.trained_steps == 15


def test_the_warm_up_is_not_made_up_for():
    trainer = make_trainer("buffer.warmup_frames=32", sections=sections(replay_ratio=1.5))
    updates = {progress.frames: progress.updates for progress in trainer}
    assert updates == {16: 0, 32: 3, 48: 6, 64: 9}


def test_a_resume_keeps_the_proportion(tmp_path):
    assert check_resumed(tmp_path, sections=sections(replay_ratio=0.8)).progress.updates == int(64 * 0.8 / 8)


def test_the_steps_of_all_processes_count_together():
    def counts(group):
        context = Context(RunInfo("run", 1, 100), torch.device("cpu"), Progress(100), "buffer", "replay", group=group)
        buffer = ReplayBuffer(ReplayBuffer.Config(minibatch_size=4, replay_ratio=1.0), context)
        return updates_after(buffer, [steps(8, masked=4 * group.rank)] * 4)

    assert in_ranks(2, counts) == [[1, 3, 4, 6]] * 2, "12 steps for 8 samples"


def test_two_keys_that_say_how_many_updates_follow_are_refused():
    with pytest.raises(ValidationError, match=r"replay_ratio = 2.0 and updates_per_batch = 3 both say"):
        ReplayBuffer.of(replay_ratio=2.0, updates_per_batch=3)
