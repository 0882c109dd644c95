"""What an env holds: told apart by hashes, taken as data, and put back into the objects that are there."""

import enum
import itertools
import random
import threading
from collections import deque
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
import torch
from rlcore_plugin_gymnasium.held import contents, held, shared, take
from rlcore_plugin_gymnasium.put_back import put_back
from rlcore_plugin_testing import difference, through_checkpoint

TABLE = np.zeros(3)


class Color(enum.Enum):
    RED = 1


class Thing(gymnasium.Env):
    defaults = np.ones(2)

    def __init__(self, **values):
        vars(self).update(values)


class Slotted:
    __slots__ = ("count",)

    def __init__(self, count):
        self.count = count


def there_and_back(before, after):
    """Return a thing that held `before` and was made to hold what one with `after` does."""
    pieces, complete = take(Thing(x=after))
    assert complete
    thing = Thing(x=before)
    put_back(thing, through_checkpoint(pieces), frozenset())
    return thing


PAIRS = [
    (1, 2),
    (None, 2.5),
    ("a", "b"),
    (b"a", b"bc"),
    (np.float32(1), np.float32(2)),
    (np.zeros(3), np.arange(3.0)),
    (np.zeros(3), np.arange(4)),
    (torch.zeros(2), torch.ones(2)),
    ([1.0, 2.0], [3.0, 4.0, 5.0]),
    ([1, "a", None], ["b", 2.0]),
    ((1, "a"), (2, "b")),
    (deque([1.0], maxlen=2), deque([2.0, 3.0], maxlen=2)),
    ({"a": 1, "b": [2]}, {"b": [3], "c": np.ones(2)}),
    ({(0, 1): 2}, {(0, 1): 3, (2, 2): 1}),
    ({"x", "y"}, {"x", "z", "w"}),
    (frozenset({1}), frozenset({2})),
    (np.random.default_rng(1), np.random.default_rng(2)),
    (np.random.RandomState(1), np.random.RandomState(2)),
    (random.Random(1), random.Random(2)),
    (torch.Generator().manual_seed(1), torch.Generator().manual_seed(2)),
    (SimpleNamespace(a=1, b=[1]), SimpleNamespace(a=2, b=[2])),
    (Slotted(1), Slotted(2)),
    ([Slotted(1), Slotted(2)], [Slotted(3), Slotted(4)]),
    (gymnasium.spaces.Discrete(3, seed=1), gymnasium.spaces.Discrete(3, seed=2)),
]


@pytest.mark.parametrize(("before", "after"), PAIRS, ids=lambda value: type(value).__name__)
def test_data_is_told_apart_and_put_back(before, after):
    assert held(Thing(x=before)) != held(Thing(x=after))
    thing = there_and_back(before, after)
    assert held(thing) == held(Thing(x=after))
    if type(before) is type(after) and isinstance(before, list | dict | deque | set):
        assert thing.x is before, "changed in place, as other parts may know it"


def test_an_array_is_changed_in_place_and_a_constant_is_not():
    array = np.zeros(2)
    assert there_and_back(array, np.ones(2)).x is array
    assert there_and_back(TABLE, np.ones(3)).x is not TABLE
    assert not TABLE.any()
    assert there_and_back(Thing.defaults, np.zeros(2)).x.tolist() == [0, 0]
    assert Thing.defaults.tolist() == [1, 1]


def test_attributes_come_and_go():
    pieces, _ = take(Thing(x=1, y=2))
    thing = Thing(x=3, z=4)
    put_back(thing, pieces, frozenset())
    assert vars(thing) == {"x": 1, "y": 2}
    put_back(thing, take(Thing(x=5, y=6))[0], frozenset({"Thing.y"}))
    assert vars(thing) == {"x": 5, "y": 2}


def test_what_is_no_data_stays_as_it_is():
    lock = threading.Lock()
    thing = there_and_back([lock], [threading.Lock(), threading.Lock()])
    assert thing.x == [lock], "nobody can make a second one"
    assert held(thing) != held(Thing(x=[1, 2])), "which the hashes tell"


def test_iterators_and_names_are_told_apart():
    def counted():
        yield from range(5)

    for make in (counted, itertools.count, lambda: iter([1, 2, 3]), lambda: itertools.cycle("ab")):
        one, other = make(), make()
        assert contents(one) == contents(other)
        next(one)
        assert contents(one) != contents(other)
    assert contents(Color.RED) != contents(1)


def test_numbers_of_a_kind_are_alike_and_others_are_not():
    assert contents(np.float64(2.5)) == contents(2.5) == contents(np.array(2.5))
    assert contents(np.float32(2.5)) != contents(2.5)
    assert contents(True) != contents(1)
    assert contents(float("nan")) == contents(float("nan"))
    assert contents({"a": 1, "b": [2]}) == contents({"b": [2], "a": 1})


def test_circles_and_depth_end():
    circle = []
    circle.append(circle)
    deep = []
    for _ in range(100):
        deep = [deep]
    pieces, complete = take(Thing(x=circle, y=deep))
    assert complete
    assert difference(through_checkpoint(pieces), pieces) is None


def test_too_much_is_said_and_its_size_counts_still():
    assert not take(Thing(x=[[n] for n in range(6000)]))[1]
    assert not take(Thing(x=np.zeros(9 << 20)))[1]
    assert held(Thing(x=[[n] for n in range(6000)])) != held(Thing(x=[[n] for n in range(6001)]))
    assert take(Thing(x=list(range(100_000))))[1], "numbers in a list take little"


def test_classes_and_modules_are_looked_at_too():
    before = shared(Thing())
    assert {"Thing.defaults", "TABLE"} <= set(before)
    TABLE[0] = 1
    try:
        changed = {name for name, value in shared(Thing()).items() if before[name] != value}
    finally:
        TABLE[0] = 0
    assert changed == {"TABLE"}
