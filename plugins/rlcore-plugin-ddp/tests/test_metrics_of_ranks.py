"""The first of several ranks writes the statistics of all values, as one process that had them all would."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
import torch
from rlcore_plugin_ddp.merging import merged
from rlcore_plugin_testing.ranks import in_ranks

from rlcore import Every, Last, Progress, Sum
from rlcore.loggers.metrics import Metrics
from rlcore.types import Alone


class Rows:
    def __init__(self):
        self.rows = []

    def write(self, row, step):
        self.rows.append(row)


def rows_of(add):
    """Return what each of three ranks writes in two rows, after `add(metrics, rank, row)`."""

    def run(group):
        rows = Rows()
        metrics = Metrics(Every(10), [rows], group)
        for number in range(2):
            add(metrics, group.rank, number)
            metrics.write(Progress(100, frames=number))
        return rows.rows

    first, *others = in_ranks(3, run)
    assert others == [[], []], "another rank than the first writes"
    return first


def test_statistics_are_those_of_all_values():
    shares = [[1.0, 7.5], [-3.0], [0.25, 1e3, 2.0, 4.0]]

    def add(metrics, rank, number):
        metrics.extend("x", [number + value for value in shares[rank]])
        metrics.add({"y": torch.tensor(shares[rank])})

    rows = Rows()
    one = Metrics(Every(10), [rows], Alone())
    one.extend("x", [1 + value for share in shares for value in share])
    one.add({"y": torch.tensor([value for share in shares for value in share])})
    one.write(Progress(100, frames=1))
    merged = rows_of(add)[1]
    assert merged.keys() == rows.rows[0].keys()
    assert merged == pytest.approx(rows.rows[0], rel=1e-12)
    assert merged["x/count"] == 7, "each value counts once, whichever rank had it"


def test_a_rank_may_have_other_keys_and_no_values():
    def add(metrics, rank, number):
        if rank == 1:
            metrics.add({"episode/return": 5.0})
        metrics.extend("episode/length", [2.0] * (rank == 2))

    assert rows_of(add) == [{"episode/return": 5.0, "episode/length": 2.0}] * 2


def test_of_last_values_that_of_the_first_rank_counts_and_sums_add_up():
    def add(metrics, rank, number):
        metrics.add({"lr": Last(0.5 + rank), "frames": Sum(10 * (number + 1) + rank)})
        if rank == 2:
            metrics.add({"own": Last(torch.tensor(3.0))})

    first, second = rows_of(add)
    assert first == {"lr": 0.5, "frames": 33, "own": 3.0}
    assert second == {"lr": 0.5, "frames": 63, "own": 3.0}


def test_what_is_not_finite_on_one_rank_shows():
    def add(metrics, rank, number):
        metrics.add({"loss": math.nan if rank == 1 else 1.0, "bound": math.inf if rank == 2 else 1.0})

    row = rows_of(add)[0]
    assert math.isnan(row["loss"])
    assert math.isnan(row["loss/min"])
    assert row["bound"] == math.inf == row["bound/max"]


def one_after_the_other(every):
    """Return count, mean, squares, least and most by key, from one rank after the other (Chan et al., 1983)."""
    found = dict(every[0])
    for own in every[1:]:
        for key, (count, mean, squares, least, most) in own.items():
            n, before, so_far, low, high = found.get(key, (0, 0.0, 0.0, math.inf, -math.inf))
            shift = mean - before
            so_far += squares + shift * shift * n * count / (n + count)
            low, high = float(np.minimum(low, least)), float(np.maximum(high, most))
            found[key] = (n + count, before + shift * count / (n + count), so_far, low, high)
    return found


@pytest.mark.parametrize("keys", ["the same", "in another order", "others"])
def test_all_keys_at_once_give_the_bits_of_one_rank_after_the_other(keys):
    numbers, every = random.Random(7), []
    for rank in range(7):
        names = [f"key-{number}" for number in range(9)]
        if keys != "the same":
            numbers.shuffle(names)
        names = [name for name in names if keys != "others" or numbers.random() < 0.5]
        own = {name: (numbers.randint(1, 40), numbers.gauss(0, 3), numbers.random(), -9.0, rank / 3) for name in names}
        if "key-3" in own and rank == 4:
            own["key-3"] = (1, math.inf, 0.0, math.nan, math.inf)
        every.append(own)
    (found, _), *none = in_ranks(7, lambda group: merged(every[group.rank], {}, (), group))
    expected = one_after_the_other(every)
    assert list(found) == list(expected)
    for key, figures in expected.items():
        assert np.array_equal(found[key], figures, equal_nan=True), key
    assert none == [({}, {})] * 6


def test_sums_are_still_sums_after_a_resume():
    def run(group):
        before = Metrics(Every(10), [], group)
        before.add({"frames": Sum(group.rank + 1)})
        rows = Rows()
        after = Metrics(Every(10), [rows], group)
        after.load_state_dict(before.state_dict())
        after.write(Progress(100, frames=1))
        return rows.rows

    assert in_ranks(2, run) == [[{"frames": 3.0}], []]


def test_alone_a_sum_is_its_last_value():
    rows = Rows()
    metrics = Metrics(Every(10), [rows])
    metrics.add({"frames": Sum(3)})
    metrics.add({"frames": Sum(5)})
    metrics.write(Progress(100, frames=1))
    assert rows.rows == [{"frames": 5.0}]
