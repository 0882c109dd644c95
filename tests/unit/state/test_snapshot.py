"""The state at one moment: what its hashes cover, what a copy is for, and what is not finite."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rlcore import Progress
from rlcore.errors import StorageError
from rlcore.state.snapshot import Snapshot, training_digest


def take(**states):
    return Snapshot.of(states, Progress(1000, 40))


def digest(state):
    return take(part=state).digests()["part"]


def rich():
    return {
        "weight": torch.arange(6, dtype=torch.float32).reshape(2, 3),
        "flags": np.array([True, False]),
        "numbers": [1, 2.5, -0.0, math.inf, "text", None, True],
        "nested": {"pair": (1, torch.tensor(3)), 7: torch.zeros(0)},
        "half": torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
    }


def test_states_come_back_as_they_were_given():
    found = take(part=rich()).states()["part"]
    expected = rich()
    assert torch.equal(found["weight"], expected["weight"])
    assert found["flags"].tolist() == [True, False]
    assert found["numbers"] == expected["numbers"]
    assert found["nested"]["pair"][1].item() == 3
    assert found["half"].dtype == torch.bfloat16


def test_equal_states_have_equal_hashes_wherever_they_lie():
    strided = rich()
    strided["weight"] = torch.arange(6, dtype=torch.float32).reshape(3, 2).reshape(2, 3).T.contiguous().T
    assert not strided["weight"].is_contiguous()
    assert digest(strided) == digest(rich())


def spoil(name, value):
    def change(state):
        state[name] = value
        return state

    return change


@pytest.mark.parametrize(
    "change",
    [
        spoil("weight", torch.arange(6).reshape(2, 3).float().index_fill(0, torch.tensor(1), 9)),
        spoil("weight", torch.arange(6, dtype=torch.float32).reshape(3, 2)),
        spoil("weight", torch.arange(6, dtype=torch.float32).view(torch.int32).reshape(2, 3)),
        spoil("weight", -rich()["weight"]),
        spoil("flags", np.array([True, True])),
        spoil("numbers", [1, 2.5, 0.0, math.inf, "text", None, True]),
        spoil("numbers", [1, 2.5, -0.0, -math.inf, "text", None, True]),
        spoil("numbers", [1, 2.5, -0.0, math.inf, "text", None, False]),
        spoil("numbers", (1, 2.5, -0.0, math.inf, "text", None, True)),
        spoil("nested", {"pair": (1, torch.tensor(4)), 7: torch.zeros(0)}),
        spoil("nested", {"pair": (1, torch.tensor(3)), 8: torch.zeros(0)}),
        spoil("another", 0),
        lambda state: {name: value for name, value in state.items() if name != "half"},
    ],
    ids=range(13),
)
def test_any_difference_changes_the_hash(change):
    assert digest(change(rich())) != digest(rich())


def test_every_bit_of_a_tensor_is_covered():
    values = torch.arange(4, dtype=torch.float32)
    seen = {digest({"x": values})}
    for byte in range(16):
        changed = values.clone()
        changed.view(torch.uint8)[byte] ^= 1
        seen.add(digest({"x": changed}))
    assert len(seen) == 17


def test_each_component_has_its_own_hash():
    before = take(a={"x": torch.ones(2)}, b={"x": torch.ones(2)}).digests()
    after = take(a={"x": torch.ones(2)}, b={"x": torch.zeros(2)}).digests()
    assert before["a"] == after["a"]
    assert before["b"] != after["b"]


def test_the_training_digest_leaves_observers_out_and_nothing_else():
    digests = {"model": "1", "logger.csv": "2"}
    assert training_digest(digests, ["logger.csv"]) == training_digest({**digests, "logger.csv": "3"}, ["logger.csv"])
    assert training_digest(digests, ["logger.csv"]) == training_digest(dict(reversed(digests.items())), ["logger.csv"])
    others = [{**digests, "model": "3"}, {**digests, "hook.new": "1"}, {"logger.csv": "2"}]
    assert len({training_digest(found, ["logger.csv"]) for found in (digests, *others)}) == 4


def test_a_copy_stays_as_it_is_while_training_goes_on():
    live = {"tensor": torch.ones(3), "array": np.ones(3), "list": [1, 2]}
    copied = take(part=live).copied()
    before = copied.digests()
    live["tensor"].zero_()
    live["array"][:] = 0
    live["list"].append(3)
    assert copied.digests() == before
    assert copied.states()["part"]["tensor"].tolist() == [1, 1, 1]


def test_the_clocks_are_those_of_the_moment():
    progress = Progress(1000, 40)
    snapshot = Snapshot.of({}, progress, evaluation=2.5)
    progress.frames = 80
    assert (snapshot.frames, snapshot.evaluation) == (40, 2.5)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_tensor_that_is_not_finite_is_named(value, dtype):
    snapshot = take(
        model={"good": torch.ones(2), "bad": torch.tensor([0, value], dtype=dtype), "count": torch.tensor(3)},
        other={"bad": torch.tensor(value)},
    )
    assert snapshot.not_finite(["model"]) == ["model/bad"]
    assert snapshot.not_finite(["model", "other", "absent"]) == ["model/bad", "other/bad"]
    assert take(model={"x": torch.ones(2), "empty": torch.ones(0)}).not_finite(["model"]) == []


def test_a_state_that_cannot_be_carried_is_refused_with_its_place():
    with pytest.raises(StorageError, match=r"state at 'hook.mine/deep/0' holds a set"):
        take(**{"hook.mine": {"deep": [{1, 2}]}})
