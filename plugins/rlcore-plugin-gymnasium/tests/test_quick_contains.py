"""The quicker answer is that of Gymnasium, for every kind of number."""

import copy
import pickle

import gymnasium
import numpy as np
import pytest
from rlcore_plugin_gymnasium.quick_contains import answer_quickly

NUMBERS = [
    -3,
    -2,
    -1,
    0,
    1,
    2,
    3,
    2**40,
    2**70,
    True,
    1.0,
    np.int64(1),
    np.int8(0),
    np.array(1),
    np.array([1]),
    None,
    "1",
]


class _Env(gymnasium.Env):
    def __init__(self, space):
        self.action_space = space


class _Own(gymnasium.spaces.Discrete):
    def contains(self, x):
        return x == 7


@pytest.mark.parametrize("start", [0, -2, 1])
@pytest.mark.parametrize("dtype", [np.int64, np.int8])
def test_it_says_what_gymnasium_says(start, dtype):
    plain = gymnasium.spaces.Discrete(3, start=start, dtype=dtype)
    space = copy.deepcopy(plain)
    answer_quickly(_Env(space))
    assert "contains" in vars(space)  # or this test compares Gymnasium with itself
    for again in (space, copy.deepcopy(space), pickle.loads(pickle.dumps(space))):
        assert [again.contains(number) for number in NUMBERS] == [plain.contains(number) for number in NUMBERS]
        assert [number in again for number in NUMBERS] == [number in plain for number in NUMBERS]
        assert again == plain
        assert repr(again) == repr(plain)


def test_a_space_of_somebodys_own_answers_itself():
    space = _Own(3)
    answer_quickly(_Env(space))
    assert 7 in space
    assert 1 not in space
