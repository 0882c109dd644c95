"""The figures of a comparison are those of rliable 1.2.0, the library of Agarwal et al. 2021.

rliable cannot be installed beside pandas 3, so its numbers are recorded: `recorded/rliable_numbers.py` makes them.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from rlcore_plugin_reports.comparison import compare
from rlcore_plugin_reports.comparison_table import as_markdown
from rlcore_plugin_reports.statistics import estimates, improvement

RECORDED = Path(__file__).parent / "recorded"
NUMBERS = json.loads((RECORDED / "rliable_numbers.json").read_text())
SETTINGS = {"lr1e-3": "lr=0.001", "lr2.5e-4": "lr=0.00025"}


def check(figure, of_rliable):
    for part in ("value", "low", "high"):
        assert getattr(figure, part) == pytest.approx(of_rliable[part], abs=1e-6, rel=1e-9), part


def test_recorded_runs_have_the_figures_of_rliable():
    comparison = compare(sorted((RECORDED / "cartpole").iterdir()), threshold=NUMBERS["target"])
    assert [(each.name, len(each.runs)) for each in comparison.settings] == [(name, 5) for name in SETTINGS.values()]
    for (recorded, name), setting in zip(SETTINGS.items(), comparison.settings, strict=True):
        assert setting.name == name
        assert setting.scores.tolist() == pytest.approx(NUMBERS["scores"][recorded], abs=1e-9)
        for figure, of_rliable in NUMBERS["settings"][recorded].items():
            check(setting.figures[figure], of_rliable)
    (of_rliable,) = (
        each for each in NUMBERS["improvements"] if (each["setting"], each["against"]) == ("lr1e-3", "lr2.5e-4")
    )
    check(comparison.improvements["lr=0.001", "lr=0.00025"], of_rliable)


@pytest.mark.parametrize("name", NUMBERS["settings"])
def test_figures_of_one_sample_are_those_of_rliable(name):
    figures = estimates(np.array(NUMBERS["scores"][name]), NUMBERS["target"])
    assert figures.keys() == NUMBERS["settings"][name].keys()
    for figure, of_rliable in NUMBERS["settings"][name].items():
        check(figures[figure], of_rliable)


@pytest.mark.parametrize("pair", NUMBERS["improvements"], ids=lambda pair: f"{pair['setting']} over {pair['against']}")
def test_probabilities_of_improvement_are_those_of_rliable(pair):
    scores, others = (np.array(NUMBERS["scores"][pair[key]]) for key in ("setting", "against"))
    check(improvement(scores, others), pair)


def test_the_table_of_the_documentation_is_that_of_the_recorded_runs():
    page = (Path(__file__).parents[3] / "docs" / "howto" / "experiments.md").read_text()
    assert as_markdown(compare(sorted((RECORDED / "cartpole").iterdir()), threshold=NUMBERS["target"])) in page
