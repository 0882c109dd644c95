"""What a resume gives back: everything, or a new warm-up where the transitions were not saved."""

from pathlib import Path

import pytest
import torch
from rlcore_plugin_replay.buffer import ReplayBuffer
from rlcore_plugin_testing import make_trainer
from tensordict import TensorDict

from rlcore.errors import StorageError
from rlcore.run.asked import ResumeOptions

BUFFER = {"use": "replay", "capacity": 40, "minibatch_size": 8, "warmup_frames": 16}


def sections(**changes):
    return {
        "plugins": {"files": [str(Path(__file__).with_name("loose_parts.py"))]},
        "loss": {"use": "loose-parts:td"},
        "estimator": None,
        "buffer": {**BUFFER, **changes},
    }


def numbers(first, count):
    return TensorDict({"number": torch.arange(first, first + count)}, [count])


@pytest.mark.parametrize("storage", ["memory", "memmap"])
@pytest.mark.parametrize("count", [6, 27])
def test_the_state_holds_the_filled_rows_and_copies_none_of_them(storage, count):
    buffer = ReplayBuffer.of(capacity=10, storage=storage)
    buffer.extend(numbers(0, count))
    rows = buffer.state_dict()["ring"]["rows"]
    assert rows.shape == (min(count, 10), 1)
    assert rows.untyped_storage().nbytes() == rows.nbytes, "a back end would copy it otherwise"
    buffer.extend(numbers(100, 10))
    assert rows.max() >= 100, "a view"


def test_a_ring_that_was_filled_is_emptied_by_the_state_of_an_empty_one():
    buffer = ReplayBuffer.of(capacity=10)
    empty = buffer.state_dict()
    buffer.extend(numbers(0, 5))
    buffer.load_state_dict(empty)
    assert (len(buffer), buffer.write_count) == (0, 0)
    buffer.extend(numbers(50, 2))
    assert set(buffer.sample(100)["number"].tolist()) == {50, 51}


def test_another_capacity_is_refused():
    buffer = ReplayBuffer.of(capacity=10)
    buffer.extend(numbers(0, 5))
    with pytest.raises(StorageError, match="holds 10 transitions, and this one 20"):
        ReplayBuffer.of(capacity=20).load_state_dict(buffer.state_dict())


def test_transitions_of_a_mapped_file_come_back_into_one(tmp_path):
    first = ReplayBuffer.of(folder=tmp_path, capacity=10, storage="memmap")
    first.extend(numbers(0, 13))
    second = ReplayBuffer.of(folder=tmp_path, capacity=10, storage="memmap")
    second.load_state_dict(first.state_dict())
    assert set(second.sample(200)["number"].tolist()) == set(range(3, 13))
    second.extend(numbers(13, 1))
    assert set(second.sample(200)["number"].tolist()) == set(range(4, 14))


def test_updates_begin_after_the_warm_up():
    trainer = make_trainer("buffer.updates_per_batch=3", "buffer.warmup_frames=32", sections=sections())
    updates = {progress.frames: progress.updates for progress in trainer}
    assert updates == {16: 0, 32: 3, 48: 6, 64: 9}


def test_a_run_whose_transitions_are_not_saved_says_so_and_warms_up_again(tmp_path, caplog):
    first = make_trainer(folder=tmp_path, sections=sections(save="none"))
    first.stop_at = 32
    first.train()
    assert first.progress.updates == 2
    second = make_trainer(folder=tmp_path, sections=sections(save="none"), resume=True)
    assert len(second.buffer) == 0
    updates = {progress.frames: progress.updates for progress in second}
    assert updates == {48: 3, 64: 4}, "16 frames more, then one each"
    assert not second.parts.store.entries()[-1].manifest["exact"]
    assert "the replay buffer is not in the checkpoints" in caplog.text


def test_steps_that_nothing_continues_are_not_joined_with_those_of_other_episodes(tmp_path):
    """An env that cannot be saved begins new episodes, without an end of the ones before."""
    changed = {**sections(n_steps=3, capacity=100), "env": {"use": "loose-parts:forgetful"}}
    first = make_trainer(folder=tmp_path, sections=changed)
    first.stop_at = 32
    first.train()
    assert first.buffer.write_count == 2 * (16 - 2), "the last two steps of each env wait"
    second = make_trainer(folder=tmp_path, sections=changed, resume=True)
    second.train()
    assert second.buffer.write_count == 2 * (16 - 2) + 2 * (16 - 2)


def test_a_collector_that_starts_over_takes_the_waiting_steps_along(tmp_path):
    changed = sections(n_steps=3, capacity=100)
    first = make_trainer(folder=tmp_path, sections=changed)
    first.stop_at = 32
    first.train()
    waiting = first.buffer.write_count
    second = make_trainer(folder=tmp_path, sections=changed, resume=ResumeOptions(fresh=("collector",)))
    second.train()
    assert second.buffer.write_count == 2 * waiting, "nothing is joined across the resume"


def test_transitions_that_do_not_fit_are_refused_by_name(tmp_path):
    first = make_trainer(folder=tmp_path, sections=sections())
    first.stop_at = 32
    first.train()
    options = ResumeOptions(accept_changes=True)
    with pytest.raises(StorageError, match=r"one step in the checkpoint, and of several here \(\[buffer\] n_steps"):
        make_trainer(folder=tmp_path, sections=sections(n_steps=3), resume=options)
    with pytest.raises(StorageError, match="it is 'replay:prioritized' here, 'replay:replay' in the checkpoint"):
        make_trainer(folder=tmp_path, sections=sections(use="replay:prioritized"), resume=options)
    stacked = {**sections(), "transform": [{"use": "transforms:frame-stack", "frames": 2}]}
    starting_over = ("transform.frame-stack", "collector", "model")
    with pytest.raises(StorageError, match=r"(?s)observation is \[6\] here, \[3\] in the checkpoint .*--fresh buffer"):
        make_trainer(folder=tmp_path, sections=stacked, resume=ResumeOptions(fresh=starting_over, accept_changes=True))
    make_trainer(
        folder=tmp_path, sections=stacked, resume=ResumeOptions(fresh=(*starting_over, "buffer"), accept_changes=True)
    ).train()


def test_priorities_reach_the_buffer_through_the_loop():
    trainer = make_trainer(sections=sections(use="replay:prioritized"))
    trainer.train()
    weights = trainer.buffer.sample(64)["priority_weight"]
    assert weights.unique().numel() > 5, "errors differ, and so do priorities"
    assert "train/td_error" in trainer.metrics.latest
