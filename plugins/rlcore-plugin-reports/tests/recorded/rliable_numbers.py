"""Writes rliable_numbers.json: what rliable says of the recorded runs. It needs an environment of its own:

python -m venv rliable-venv
rliable-venv/bin/pip install rliable==1.2.0 arch==7.2.0 "pandas<3"
rliable-venv/bin/python rliable_numbers.py
"""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from itertools import combinations
from pathlib import Path

import numpy as np
from rliable import library, metrics

HERE = Path(__file__).parent
REPETITIONS = 50_000
TARGET = 475.0


def score(run):
    """The mean return of the last evaluation."""
    returns = defaultdict(list)
    with (run / "evaluations.csv").open(newline="") as stream:
        for row in csv.DictReader(stream):
            returns[int(row["frames"])].append(float(row["return"]))
    return np.mean(returns[max(returns)])


def scores_by_setting():
    settings = defaultdict(list)
    for run in sorted((HERE / "cartpole").iterdir()):
        settings[run.name.partition("-seed-")[0]].append(score(run))
    found = {name: np.array(values) for name, values in settings.items()}
    return {**found, "ties": np.array([500.0, 100.0, 500.0]), "many": np.arange(13.0) ** 2}


def of_one(scores):
    """Mean, median and interquartile mean, and the gap; the median is that of runs, each taken for a task."""
    return np.array(
        [
            metrics.aggregate_mean(scores),
            metrics.aggregate_median(scores.T),
            metrics.aggregate_iqm(scores),
            metrics.aggregate_optimality_gap(scores, TARGET),
        ]
    )


def of_two(scores, others):
    return np.array([metrics.probability_of_improvement(scores, others)])


def estimate(function, scores):
    np.random.seed(0)  # what rliable samples with
    values, intervals = library.get_interval_estimates({"": scores}, function, reps=REPETITIONS)
    low, high = intervals[""]
    return [{"value": v, "low": lo, "high": hi} for v, lo, hi in zip(values[""].tolist(), low, high, strict=True)]


def main():
    scores = scores_by_setting()
    matrices = {name: values[:, None] for name, values in scores.items()}
    names = ("mean", "median", "iqm", "optimality_gap")
    numbers = {
        "target": TARGET,
        "scores": {name: values.tolist() for name, values in scores.items()},
        "settings": {
            name: dict(zip(names, estimate(of_one, matrix), strict=True)) for name, matrix in matrices.items()
        },
        "improvements": [
            {"setting": a, "against": b, **estimate(of_two, [matrices[a], matrices[b]])[0]}
            for a, b in combinations(matrices, 2)
        ],
    }
    (HERE / "rliable_numbers.json").write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    main()
