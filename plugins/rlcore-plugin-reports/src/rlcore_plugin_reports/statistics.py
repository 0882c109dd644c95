"""What the scores of several runs say about a setting: means, medians, interquartile means, and their intervals.

The intervals and the probability of improvement are those of Agarwal et al. 2021, "Deep Reinforcement Learning at the
Edge of the Statistical Precipice" (arXiv 2108.13264), with runs resampled with replacement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from rlcore.types import Array

CONFIDENCE: Final = 0.95
REPETITIONS: Final = 50_000
# a quarter of the scores at each end has no part in the interquartile mean
_CUT: Final = 0.25


@dataclass(frozen=True)
class Estimate:
    """A figure of a sample of runs.

    Attributes:
        value: of the runs that there are.
        low: lower end of its 95% interval; None where there is none, as for a single run.
        high: upper end.
    """

    value: float
    low: float | None = None
    high: float | None = None


def interquartile_mean(scores: Array) -> Array:
    """Return the mean of the middle half, over the last axis; of fewer than four scores it is the mean."""
    ordered = np.sort(scores, axis=-1)
    cut = int(_CUT * scores.shape[-1])
    return np.asarray(ordered[..., cut : scores.shape[-1] - cut].mean(-1))


def standard_deviation(scores: Array) -> float | None:
    """Return that of the population the scores are a sample of (divided by n - 1); None of a single one."""
    return float(scores.std(ddof=1)) if scores.size > 1 else None


def estimates(scores: Array, target: float | None = None, repetitions: int = REPETITIONS) -> dict[str, Estimate]:
    """Return mean, median and interquartile mean of scores, and the optimality gap where there is a target.

    Args:
        scores: `[run]`, float.
        target: score that counts as optimal; what is above it counts as it.
        repetitions: how often the runs are resampled.
    """
    figures = {"mean": scores.mean(-1), "median": np.median(scores, axis=-1), "iqm": interquartile_mean(scores)}
    samples: dict[str, Array] = {}
    if scores.size > 1:
        again = scores[_generator().randint(0, scores.size, size=(repetitions, scores.size))]
        samples = {
            "mean": again.mean(-1),
            "median": np.median(again, axis=-1),
            "iqm": interquartile_mean(again),
        }
    if target is not None:
        figures["optimality_gap"] = target - np.minimum(scores, target).mean()
        if scores.size > 1:
            samples["optimality_gap"] = target - np.minimum(again, target).mean(-1)
    return {name: _estimate(value, samples.get(name)) for name, value in figures.items()}


def improvement(scores: Array, others: Array, repetitions: int = REPETITIONS) -> Estimate:
    """Return the probability that a run of one setting scores higher than one of another; equal ones count half.

    Args:
        scores: `[run]` of the one, float.
        others: `[run]` of the other.
        repetitions: how often the runs of both are resampled, independently of each other.
    """
    wins = (scores[:, None] > others) + 0.5 * (scores[:, None] == others)
    if scores.size < 2 or others.size < 2:
        return Estimate(float(wins.mean()))
    generator, sizes = _generator(), (scores.size, others.size)
    if scores.size == others.size:  # as one by one below, at once
        pairs = generator.randint(0, scores.size, size=(repetitions, 2, scores.size))
        ours, theirs = _counts(pairs[:, 0], scores.size), _counts(pairs[:, 1], scores.size)
    else:
        turns = [[generator.randint(0, size, size=size) for size in sizes] for _ in range(repetitions)]
        ours, theirs = (
            _counts(np.stack(each), size) for each, size in zip(zip(*turns, strict=True), sizes, strict=True)
        )
    return _estimate(wins.mean(), ((ours @ wins) * theirs).sum(-1) / (scores.size * others.size))


def _generator() -> np.random.RandomState:
    """Return a generator that gives the same numbers with every version of NumPy, so that intervals stay the same."""
    return np.random.RandomState(0)


def _counts(indices: Array, size: int) -> Array:
    """Return how often each run is in each sample, `[repetition, run]`."""
    return np.stack([(indices == run).sum(-1) for run in range(size)], axis=-1)


def _estimate(value: Array | float, sample: Array | None) -> Estimate:
    if sample is None:
        return Estimate(float(value))
    tail = (1 - CONFIDENCE) / 2
    low, high = np.percentile(sample, [100 * tail, 100 * (1 - tail)])
    return Estimate(float(value), float(low), float(high))
