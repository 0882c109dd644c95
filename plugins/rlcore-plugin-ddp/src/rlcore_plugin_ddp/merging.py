"""The statistics of several ranks become those of one.

The figures of a key are merged in the order of the ranks, each with those of all ranks before it (Chan et al., 1983):
a row has the same bits whatever connects the ranks. All keys are merged at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from rlcore.types import Group

# the columns of the figures of a key
_COUNT, _MEAN, _SQUARES, _LEAST, _MOST = range(5)
FIGURES: Final = 5

Array = np.ndarray[Any, np.dtype[np.float64]]
Statistics = Mapping[str, tuple[float, ...]]


def merged(
    statistics: Statistics, last: Mapping[str, float], sums: Sequence[str], group: Group
) -> tuple[Statistics, dict[str, float]]:
    """Return the statistics and the last values of all ranks on the first rank, and none on the others.

    Every rank calls this. Keys stand in the order in which the first rank has them, those that it has not behind them.

    Args:
        statistics: count, mean, sum of squared deviations, least and most of at least one value, by key.
        last: values of which only the last counts, by key.
        sums: those keys of `last` to which each rank adds its value.
        group: of all ranks.
    """
    every = group.gather(*handed_over(statistics, last, sums))
    if not every:
        return {}, {}
    shares = [(names, tensors["figures"].numpy()) for names, tensors in every]
    return _statistics([(keys, row) for (keys, _, _), row in shares]), _last(shares)


def handed_over(
    statistics: Statistics, last: Mapping[str, float], sums: Sequence[str] = ()
) -> tuple[list[list[str]], dict[str, Tensor]]:
    """Return what a rank gives the first one: its keys, and its numbers in their order, float64."""
    numbers = [number for figures in statistics.values() for number in figures]
    row = torch.tensor([*numbers, *last.values()], dtype=torch.float64)
    return [list(statistics), list(last), list(sums)], {"figures": row}


def _statistics(shares: list[tuple[list[str], Array]]) -> dict[str, tuple[float, ...]]:
    """Return the statistics of all ranks by key, from the keys of each and its row, which begins with their figures."""
    keys, places = _places([names for names, _ in shares])
    table = np.zeros((len(shares), len(keys), FIGURES))
    table[:, :, _LEAST], table[:, :, _MOST] = np.inf, -np.inf
    for rank, (names, row) in enumerate(shares):
        figures = row[: FIGURES * len(names)].reshape(-1, FIGURES)
        if places[rank] is None:
            table[rank] = figures
        else:
            table[rank, places[rank]] = figures
    with np.errstate(invalid="ignore", over="ignore"):  # infinities and NaN are written as they come out
        return dict(zip(keys, map(tuple, _folded(table).tolist()), strict=True))


def _places(every: list[list[str]]) -> tuple[list[str], list[list[int] | None]]:
    """Return all keys in their order, and where those of each rank are among them; None where they are all of them."""
    keys = every[0]
    if all(names == keys for names in every):
        return keys, [None] * len(every)
    number = {key: place for place, key in enumerate(dict.fromkeys(key for names in every for key in names))}
    return list(number), [[number[key] for key in names] for names in every]


def _folded(table: Array) -> Array:
    """Return the figures `[keys, 5]` of a table `[ranks, keys, 5]`; a count of 0 says that a rank has none."""
    counts, means = np.ascontiguousarray(table[..., _COUNT]), np.ascontiguousarray(table[..., _MEAN])
    total = np.cumsum(counts, axis=0)
    before, divisor = total - counts, np.maximum(total, 1.0)
    has = counts > 0
    whole = bool(has.all())
    mean, shifts = means[0], np.zeros_like(means)
    for rank in range(1, len(table)):  # one after the other, as each begins from the mean of those before it
        shift = np.subtract(means[rank], mean, out=shifts[rank])
        moved = mean + shift * counts[rank] / divisor[rank]
        mean = moved if whole else np.where(has[rank], moved, mean)
    squares = table[..., _SQUARES] + shifts * shifts * before * counts / divisor
    if not whole:
        squares = np.where(has, squares, 0.0)
    return np.stack(
        [
            total[-1],
            mean,
            np.add.accumulate(squares, axis=0)[-1],
            np.minimum.reduce(table[..., _LEAST], axis=0),
            np.maximum.reduce(table[..., _MOST], axis=0),
        ],
        axis=1,
    )


def _last(shares: list[tuple[Any, Array]]) -> dict[str, float]:
    """Return the last values: that of the first rank that has one, or of a sum what all have together."""
    values: dict[str, float] = {}
    for (_, names, sums), row in shares:
        for key, value in zip(names, row[len(row) - len(names) :].tolist(), strict=True):
            if key not in values:
                values[key] = value
            elif key in sums:
                values[key] += value
    return values
