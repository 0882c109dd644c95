"""Rows keep every entry bit for bit, the latest ones stay, and Python can use the buffer by itself."""

import logging
import os

import pytest
import torch
from rlcore_plugin_replay.buffer import ReplayBuffer
from rlcore_plugin_replay.layout import RowLayout
from rlcore_plugin_replay.storage import allocate
from tensordict import TensorDict

from rlcore.errors import RlcoreError, StorageError


def numbered(first, count, **further):
    """Transitions whose every entry says which number they have."""
    number = torch.arange(first, first + count)
    following = {
        "observation": number.float().unsqueeze(-1) + torch.tensor([0.25, 0.5, 0.75]),
        "reward": number.float().unsqueeze(-1),
        "terminated": (number % 2 == 0).unsqueeze(-1),
        "done": (number % 2 == 0).unsqueeze(-1),
    }
    entries = {
        "observation": number.float().unsqueeze(-1) * torch.ones(3),
        "image": number.to(torch.uint8).reshape(-1, 1, 1).expand(-1, 2, 5).clone(),
        "action": number,
        "exact": number.double().unsqueeze(-1) / 3,
        "next": TensorDict(following, [count]),
    }
    return TensorDict({**entries, **further}, [count])


def test_every_dtype_and_shape_comes_back_bit_for_bit():
    buffer = ReplayBuffer.of(capacity=50, minibatch_size=64)
    batch = numbered(0, 20)
    assert buffer.extend(batch).tolist() == list(range(20))
    samples = buffer.sample()
    assert samples.batch_size == (64,)
    assert len(samples["action"].unique()) > 10, "sampled from all"
    for key in batch.keys(include_nested=True, leaves_only=True):
        expected = batch[key][samples["action"]]
        assert samples[key].dtype == expected.dtype
        assert torch.equal(samples[key], expected), key
    assert torch.equal(samples["index"], samples["action"])


def test_rows_that_were_not_read_are_not_read_later_from_what_took_their_place():
    buffer = ReplayBuffer.of(capacity=50, minibatch_size=8)
    buffer.extend(numbered(0, 50))
    read, late = next(buffer.minibatches(None)), next(buffer.minibatches(None))
    before = read["action"].clone()
    buffer.extend(numbered(50, 20))
    assert torch.equal(read["observation"][:, 0].long(), before), "all entries of a row are copied together"
    with pytest.raises(RlcoreError, match="'action' of a minibatch is read for the first time after further"):
        late["action"]


def test_layouts_are_joined_one_behind_the_other():
    columns = {"a": torch.rand(4, 3), "b": torch.arange(4), "c": torch.arange(8, dtype=torch.uint8).view(4, 2)}
    parts = [RowLayout.of({key: columns[key] for key in keys}) for keys in ("c", "ab")]
    joined = RowLayout.joined(parts, ["a", "b", "c"])
    assert (joined.keys, joined.words) == (("a", "b", "c"), sum(part.words for part in parts))
    rows = torch.zeros(4, joined.words, dtype=torch.int64)
    for key, column in columns.items():
        joined.view(rows, key).copy_(column)
    for part, words in zip(parts, (rows[:, :1], rows[:, 1:]), strict=True):
        for key in part.keys:
            assert torch.equal(part.view(words.contiguous(), key), columns[key])
            assert torch.equal(joined.reader(rows)(key), columns[key])


def test_rows_are_packed_without_holes_between_dtypes():
    columns = {
        "flag": torch.zeros(1, 1, dtype=torch.bool),
        "observation": torch.zeros(1, 3),
        "action": torch.zeros(1, dtype=torch.int64),
        "wide": torch.zeros(1, 2, dtype=torch.float64),
    }
    layout = RowLayout.of(columns)
    assert layout.words == 5, "8 + 16 + 12 + 1 bytes, filled up to whole words"
    rows = torch.zeros(2, layout.words, dtype=torch.int64)
    layout.view(rows, "flag")[1] = True
    layout.view(rows, "observation")[1] = 1.5
    assert layout.view(rows, "observation").tolist() == [[0, 0, 0], [1.5, 1.5, 1.5]]
    assert layout.view(rows, "flag").tolist() == [[False], [True]]
    assert not layout.view(rows, "wide").any()


@pytest.mark.parametrize("storage", ["device", "memory", "memmap"])
def test_new_rows_take_the_place_of_the_oldest(storage):
    buffer = ReplayBuffer.of(capacity=10, storage=storage)
    buffer.extend(numbered(0, 8))
    assert (len(buffer), buffer.write_count) == (8, 8)
    assert buffer.extend(numbered(8, 5)).tolist() == [8, 9, 0, 1, 2]
    assert (len(buffer), buffer.write_count) == (10, 13)
    drawn = buffer.sample(1000)
    assert set(drawn["action"].tolist()) == set(range(3, 13))
    assert torch.equal(drawn["exact"].squeeze(-1), drawn["action"].double() / 3)


def test_of_more_rows_than_there_is_room_for_the_last_are_kept():
    buffer = ReplayBuffer.of(capacity=10)
    buffer.extend(numbered(0, 4))
    buffer.extend(numbered(4, 27))
    assert buffer.write_count == 31
    assert set(buffer.sample(1000)["action"].tolist()) == set(range(21, 31))


def test_draws_are_uniform():
    buffer = ReplayBuffer.of(capacity=10)
    buffer.extend(numbered(0, 7))
    counts = torch.bincount(buffer.sample(70_000)["index"], minlength=7)
    assert counts.shape == (7,)
    assert ((counts - 10_000).abs() < 500).all(), "five standard deviations are 463"


def test_a_buffer_of_another_seed_draws_others():
    draws = []
    for seed in (1, 1, 2):
        buffer = ReplayBuffer.of(seed=seed, capacity=100)
        buffer.extend(numbered(0, 100))
        draws.append(buffer.sample()["index"])
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


def test_a_batch_of_two_dimensions_is_flattened_without_its_masked_steps():
    buffer = ReplayBuffer.of(capacity=20)
    batch = TensorDict({"action": torch.arange(6).reshape(2, 3)}, [2, 3])
    batch["collector"] = TensorDict({"mask": torch.tensor([[1, 1, 0], [1, 0, 1]]).bool().unsqueeze(-1)}, [2, 3])
    assert len(buffer.extend(batch)) == 4
    samples = buffer.sample(200)
    assert set(samples["action"].tolist()) == {0, 1, 3, 5}
    assert "collector" not in samples.keys()  # noqa: SIM118 - a TensorDict is no mapping


def test_an_empty_buffer_gives_no_minibatches_and_refuses_to_sample():
    buffer = ReplayBuffer.of(capacity=5)
    assert list(buffer.minibatches(numbered(0, 1))) == []
    with pytest.raises(RlcoreError, match="empty"):
        buffer.sample()


def test_a_batch_with_other_entries_is_refused():
    buffer = ReplayBuffer.of(capacity=5)
    buffer.extend(numbered(0, 2))
    with pytest.raises(RlcoreError, match=r"'extra' is float32 \[1\], and was absent"):
        buffer.extend(numbered(2, 2, extra=torch.zeros(2, 1)))


def test_the_size_is_said_when_the_rows_are_allocated(caplog):
    caplog.set_level(logging.INFO)
    for save, said in (("full", "a checkpoint carries those"), ("none", "checkpoints leave them out")):
        caplog.clear()
        ReplayBuffer.of(capacity=65_536, save=save).extend(numbered(0, 2))
        assert "65,536 transitions of 56 bytes, 3.5 MiB" in caplog.text
        assert said in caplog.text


def test_a_mapped_file_leaves_nothing_behind(tmp_path):
    buffer = ReplayBuffer.of(folder=tmp_path, capacity=10, storage="memmap")
    buffer.extend(numbered(0, 4))
    assert list((tmp_path / "replay").iterdir()) == [], "the file has no name"
    assert len(buffer.sample(3)) == 3


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="room is not taken beforehand here")
def test_a_full_disk_is_an_error_before_the_first_row(tmp_path):
    with pytest.raises(StorageError, match="no room for a replay buffer"):
        allocate("memmap", (1 << 50, 8), torch.device("cpu"), tmp_path)


def test_memory_that_is_not_there_is_an_error():
    with pytest.raises(StorageError, match="Lower"):
        allocate("memory", (1 << 50, 8), torch.device("cpu"), None)
