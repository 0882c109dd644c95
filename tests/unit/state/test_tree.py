from __future__ import annotations

import json
import math
from collections import OrderedDict
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tensordict import LazyStackedTensorDict, NonTensorData, TensorDict, TensorDictParams

from rlcore.errors import StorageError
from rlcore.state.tree import flatten, tensor_names, unflatten


def there_and_back(value):
    tensors = {}
    tree = json.loads(json.dumps(flatten(value, "part", tensors), allow_nan=False))
    return unflatten(tree, tensors)


def same(left, right):
    if type(left) is not type(right):
        return False
    if isinstance(left, torch.Tensor):
        close = torch.isclose(left, right, rtol=0, atol=0, equal_nan=True) if left.numel() else torch.ones(1)
        return left.dtype == right.dtype and left.shape == right.shape and bool(close.all())
    if isinstance(left, np.ndarray):
        return left.dtype == right.dtype and left.shape == right.shape and np.array_equal(left, right)
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right or (left != left and right != right)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        0,
        -1,
        2**200,
        0.1,
        -0.0,
        1e308,
        5e-324,
        math.inf,
        -math.inf,
        math.nan,
        "",
        "text \n \u2603 \0",
        [],
        (),
        {},
        [1, [2, (3, {"a": [4.0]})]],
        (1, (2, [3])),
        {"a": {"b": {"c": None}}},
        {1: "int key", (2, "x"): "tuple key", None: "none key", 1.5: "float key"},
        {"$tensor": "looks like a mark", "$other": 1},
        {"$float": "1.0"},
        {"": 1},
        [{"$tuple": [1]}],
        torch.zeros(()),
        torch.arange(6).reshape(2, 3),
        torch.empty(0),
        torch.empty(3, 0, 2),
        torch.tensor([1.5, math.nan, math.inf]),
        torch.tensor([1 + 2j]),
        torch.ones(3, dtype=torch.bfloat16),
        torch.ones(3, dtype=torch.bool),
        torch.arange(12).reshape(3, 4).t()[1:, ::2],
        np.zeros((2, 0)),
        np.array(5.0),
        np.arange(6, dtype=np.int16).reshape(2, 3)[:, ::-1],
        np.array([True, False]),
        {"state": {0: {"step": torch.tensor(3.0)}, 1: {"step": torch.tensor(4.0)}}, "groups": [{"lr": 1e-3}]},
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_state_comes_back_as_it_was(value):
    back = there_and_back(value)
    if isinstance(value, np.ndarray):
        value = value.copy()
    assert same(back, value), f"{value!r} came back as {back!r}"


def test_zero_keeps_its_sign():
    assert math.copysign(1, there_and_back(-0.0)) == -1


@pytest.mark.parametrize(
    ("value", "expected"),
    [(np.float32(0.5), 0.5), (np.int64(7), 7), (np.bool_(True), True), (OrderedDict(a=1), {"a": 1})],
)
def test_scalars_of_numpy_and_other_mappings_come_back_plain(value, expected):
    back = there_and_back(value)
    assert back == expected
    assert type(back) is type(expected)


def test_tensors_whose_paths_read_alike_are_kept_apart():
    value = {
        "a": {"b": torch.tensor(1)},
        "a/b": torch.tensor(2),
        "c": {1: torch.tensor(3), "1": torch.tensor(4)},
        "d": [torch.tensor(5)],
        "d/0": torch.tensor(6),
    }
    assert same(there_and_back(value), value)


def test_the_state_of_a_module_and_its_optimizer_comes_back():
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(module.parameters())
    module(torch.randn(5, 3)).sum().backward()
    optimizer.step()
    for owner in (module, optimizer):
        state = owner.state_dict()
        back = there_and_back(state)
        assert same(dict(back), dict(state))
        assert getattr(back, "_metadata", None) == getattr(state, "_metadata", None)
        owner.load_state_dict(there_and_back(state))


def test_tensors_do_not_require_gradients():
    tensors = {}
    flatten({"a": torch.ones(2, requires_grad=True) * 2}, "x", tensors)
    assert not tensors["x/a"].requires_grad


def a_tensordict():
    return TensorDict(
        {"a": torch.zeros(3, 2), "deep": {"b": torch.ones(3), "said": NonTensorData("x", batch_size=[3])}},
        batch_size=[3],
        names=["time"],
    )


@pytest.mark.parametrize("value", [torch.Size([2, 3]), torch.Size([]), torch.device("cpu"), torch.bfloat16])
def test_forms_of_tensors_come_back(value):
    assert same(there_and_back([value]), [value])


def test_a_tensordict_comes_back_with_sizes_names_and_texts():
    back = there_and_back({"x": a_tensordict()})["x"]
    assert type(back) is TensorDict
    assert (back.batch_size, back.names, back.device) == (torch.Size([3]), ["time"], None)
    assert back["deep"].batch_size == torch.Size([3])
    assert back["deep", "said"] == "x"
    assert same(back["deep", "b"], torch.ones(3))


def test_tensordicts_of_unlike_shapes_in_one_stack_come_back():
    stack = LazyStackedTensorDict(
        *(TensorDict({"x": torch.ones(n), "n": NonTensorData(n)}) for n in (1, 2)), stack_dim=0
    )
    back = there_and_back(stack)
    assert type(back) is LazyStackedTensorDict
    assert [row["x"].tolist() for row in back.tensordicts] == [[1.0], [1.0, 1.0]]
    assert [row["n"] for row in back.tensordicts] == [1, 2]


def test_the_state_of_a_tensordict_keeps_what_is_in_its_attribute():
    fresh = TensorDict().load_state_dict(there_and_back(a_tensordict().state_dict()), strict=False)
    assert fresh.batch_size == torch.Size([3])
    assert set(fresh.keys()) == {"a", "deep"}
    assert fresh["deep"].batch_size == torch.Size([3])


def test_tensors_of_a_state_dict_are_named_as_those_of_a_plain_dict():
    tensors = {}
    flatten(torch.nn.Linear(1, 1).state_dict(), "model", tensors)
    assert list(tensors) == ["model/weight", "model/bias"]


def test_a_collection_that_would_lose_its_kind_is_refused():
    with pytest.raises(StorageError, match=r"'part/x' holds a TensorDictParams.*cannot carry"):
        there_and_back({"x": TensorDictParams(TensorDict({"a": torch.nn.Parameter(torch.ones(1))}))})


@pytest.mark.parametrize(
    "tree",
    [
        {"$later": 1},
        {"$dtype": "nn"},
        {"$dtype": "load"},
        {"$device": "nowhere"},
        {"$segment_tree": ["Popen", {"$tensor": "x"}]},
        {"$size": [[1]]},
        {"$tensordict": {"entries": 3}},
    ],
    ids=str,
)
def test_only_the_kinds_of_the_table_are_built(tree):
    with pytest.raises(StorageError, match="the checkpoint holds a"):
        unflatten({"x": tree}, {"x": torch.ones(2)})


@pytest.mark.parametrize(
    "foreign",
    [
        object(),
        {1, 2},
        b"bytes",
        1j,
        Path("x"),
        SimpleNamespace(a=1),
        lambda: None,
        int,
        range(3),
        np.datetime64("now"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_checkpoint_cannot_carry_is_refused_with_its_path(foreign):
    with pytest.raises(StorageError, match=r"state at 'hook.mine/deep/1' holds a .*cannot carry"):
        flatten({"deep": [0, foreign]}, "hook.mine", {})


@pytest.mark.parametrize(
    "array",
    [
        np.array([object()]),
        np.array(["text"]),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        np.zeros(2, dtype=">f8"),
    ],
    ids=lambda array: str(array.dtype),
)
def test_an_array_that_is_no_tensor_is_refused_with_its_path(array):
    with pytest.raises(StorageError, match=r"state at 'hook.mine/x' is an array of .*cannot carry"):
        flatten({"x": array}, "hook.mine", {})


def test_a_missing_tensor_is_named():
    with pytest.raises(StorageError, match="the checkpoint has no tensor 'model/weight'"):
        unflatten({"a": {"$tensor": "model/weight"}}, {})


def test_names_of_tensors_are_found_in_the_order_in_which_they_were_given():
    state = {
        "b": [torch.ones(1), {"x": np.ones(2)}],
        "a": (torch.zeros(2), 3, None),
        5: {"$tensor": torch.ones(3)},
        "e": {},
    }
    tensors = {}
    assert tensor_names(flatten(state, "part", tensors)) == tuple(tensors)
    assert len(tensors) == 4
    assert tensor_names(flatten({}, "part", {})) == ()
