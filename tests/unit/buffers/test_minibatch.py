"""The minibatch."""

from __future__ import annotations

import pytest
import torch

from rlcore import Minibatch


def minibatch():
    gathered = []

    def gather(key):
        gathered.append(key)
        return torch.arange(3.0)

    return Minibatch(3, ("a", ("next", "b")), gather), gathered


def test_an_entry_is_gathered_when_it_is_first_read():
    batch, gathered = minibatch()
    assert len(batch) == 2
    assert ("next", "b") in batch
    assert "c" not in batch
    assert gathered == []
    for _ in range(2):
        assert batch["next", "b"].tolist() == [0, 1, 2]
    assert gathered == [("next", "b")]


def test_a_minibatch_behaves_as_a_mapping():
    batch, _ = minibatch()
    batch["new"] = torch.zeros(3)
    assert list(batch) == list(batch.keys()) == ["a", ("next", "b"), "new"]
    assert [key for key, _ in batch.items()] == list(batch)
    assert len(batch.values()) == len({**batch}) == 3
    assert batch.get("absent") is None
    assert batch.get("a").tolist() == [0, 1, 2]
    assert batch.batch_size == torch.Size([3])
    with pytest.raises(KeyError, match=r"no entry 'absent'; it has a, \('next', 'b'\)"):
        batch["absent"]


def test_an_assigned_entry_replaces_the_one_of_the_batch():
    batch, gathered = minibatch()
    batch["a"] = torch.ones(3)
    assert batch["a"].tolist() == [1, 1, 1]
    assert gathered == []
    assert batch.to_tensordict()["a"].tolist() == [1, 1, 1]


def test_a_minibatch_becomes_a_tensordict():
    batch, _ = minibatch()
    converted = batch.to_tensordict()
    assert tuple(converted.batch_size) == (3,)
    assert converted["next", "b"].tolist() == [0, 1, 2]
    of = Minibatch.of({"a": torch.zeros(4, 2)})
    assert (of.size, of["a"].shape) == (4, (4, 2))
