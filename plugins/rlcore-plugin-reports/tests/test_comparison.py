"""Runs compared: which are one setting, at which frame, and what is refused."""

from __future__ import annotations

import pytest
from rlcore_plugin_reports.comparison import area, compare, value_at
from rlcore_plugin_reports.comparison_plot import plot_comparison

from rlcore import ConfigError

FAST = {"optimizer": [{"use": "core:adam", "name": "adam", "lr": 0.01}]}


@pytest.fixture
def two_settings(make_run):
    """Two settings of three seeds."""
    slow = [make_run(f"slow-{s}", {0: [s], 50: [10 + s], 100: [20 + s]}, seed=s) for s in (1, 2, 3)]
    fast = [make_run(f"fast-{s}", {0: [s], 50: [40 + s], 100: [60 + s]}, seed=s, **FAST) for s in (1, 2, 3)]
    return [*slow, *fast]


def test_seeds_are_one_setting_named_by_what_differs(two_settings):
    comparison = compare(two_settings)
    assert [(each.name, len(each.runs)) for each in comparison.settings] == [("lr=0.001", 3), ("lr=0.01", 3)]
    slow, fast = comparison.settings
    assert (slow.figures["mean"].value, fast.figures["mean"].value) == (22, 62)
    assert slow.deviation == 1, "of the population that seeds are a sample of"
    assert slow.figures["area"].value == (2 + 12) / 2 * 0.5 + (12 + 22) / 2 * 0.5
    assert comparison.improvements["lr=0.001", "lr=0.01"].value == 0
    assert comparison.frame == 100


def test_what_only_watches_or_keeps_a_run_makes_no_other_setting(make_run):
    plain = make_run("plain", {10: [1.0]}, seed=1)
    watched = make_run(
        "watched",
        {10: [2.0]},
        seed=2,
        hook=[{"use": "core:progress-bar", "name": "progress-bar"}],
        logger=[{"use": "csv:csv"}],
        checkpoint={"every": 5},
    )
    assert len(compare([plain, watched]).settings) == 1


def test_a_threshold_says_when_it_was_reached_and_how_far_runs_stay_below(two_settings):
    slow, fast = compare(two_settings, threshold=42).settings
    assert slow.reached == [None, None, None]
    assert fast.reached == [100, 50, 50], "at frame 50 they had 41, 42 and 43"
    assert slow.figures["optimality_gap"].value == 20
    assert fast.figures["optimality_gap"].value == 0, "what is above the target counts as the target"
    assert compare(two_settings, threshold=42, at=50).settings[1].reached == [None, 50, 50]


def test_runs_of_different_lengths_are_compared_where_all_of_them_are(make_run):
    short = make_run("short", {0: [0.0], 60: [6.0]}, seed=1, state="failed")
    long = make_run("long", {0: [0.0], 50: [5.0], 100: [10.0]}, seed=2)
    comparison = compare([short, long])
    assert comparison.frame == 60
    assert comparison.settings[0].scores.tolist() == [6, 6]
    said = " ".join(comparison.notes)
    assert "Compared at frame 60, the last that every run reached: short ends there, others at 100." in said
    assert "long recorded nothing at frame 60: the value is on the line between" in said
    assert "Not done: short (failed)." in said
    assert not any("Compared at" in note for note in compare([short, long], at=60).notes), "that was asked for"


def test_what_a_sample_lacks_is_said(make_run):
    single = make_run("single", {10: [1.0]}, seed=1)
    pair = [make_run(f"pair-{n}", {10: [float(n)]}, seed=7, **FAST) for n in (1, 2)]
    comparison = compare([single, *pair])
    alone = comparison.settings[0]
    assert (alone.deviation, alone.figures["iqm"].low) == (None, None)
    assert comparison.improvements[alone.name, comparison.settings[1].name].low is None
    said = " ".join(comparison.notes)
    assert "One seed only, so no standard deviation and no interval: lr=0.001." in said
    assert "Fewer than 4 seeds" in said
    assert "lr=0.01: 2 runs have the seed 7, so they are no independent sample." in said
    assert "different seeds (lr=0.001: 1; lr=0.01: 7, 7)" in said


def test_a_value_between_records_is_on_the_line_between_them():
    assert value_at({0: 0.0, 10: 5.0}, 4) == 2
    assert area({0: 0.0, 10: 10.0, 20: 10.0}, 0, 20) == 7.5
    assert area({0: 0.0, 10: 10.0}, 0, 5) == 2.5, "the part of a curve up to there"
    assert area({10: 3.0}, 10, 10) == 3


def test_runs_that_cannot_be_compared_are_refused(make_run, tmp_path):
    run = make_run("run", {0: [0.0], 50: [5.0]})
    other = make_run("other", {50: [1.0]}, env="Pendulum-v1")
    without = make_run("without", {})
    late = make_run("late", {60: [1.0], 80: [1.0]}, seed=2)
    broken = make_run("broken", {50: ["nan"]})
    unread = make_run("unread", {50: [1.0]})
    (unread / "config.toml").write_text("[run\n")
    for folders, arguments, message in (
        ([tmp_path / "absent"], {}, "absent' is not a run folder"),
        ([tmp_path], {}, "is not a run folder: it has no config.toml"),
        ([run, tmp_path / "x" / ".." / "run"], {}, "is named twice; a run counts once"),
        ([run, other], {}, r"different envs.*CartPole-v1: .*run; Pendulum-v1: .*other\); compare those of one env"),
        ([run, without], {}, r"without' has no evaluation/return; give its config an \[evaluator\]"),
        ([run], {"metric": "evaluation/retrun"}, "did you mean 'evaluation/return'"),
        ([run, late], {}, "no frame in common: .*run' ends at 50, .*late' begins at 60"),
        ([run], {"at": 80}, "--at 80: .*run' ends at frame 50"),
        ([late], {"at": 10}, "--at 10: .*late' begins at frame 60"),
        ([broken], {}, "broken' has nan at frame 50"),
        ([unread], {}, "config.toml of .*unread' cannot be read"),
    ):
        (tmp_path / "x").mkdir(exist_ok=True)
        with pytest.raises(ConfigError, match=message):
            compare(folders, **arguments)


def test_the_picture_is_drawn_of_any_number_of_settings(two_settings, make_run, tmp_path):
    one = make_run("one", {100: [4.0]}, loss={"use": "dqn:dqn"})
    for name, folders in (("three.png", [*two_settings, one]), ("one.svg", [one])):
        file = plot_comparison(compare(folders, threshold=30), tmp_path / name)
        assert file.stat().st_size > 5_000
    with pytest.raises(ConfigError, match=r"a.nonsense' cannot be written"):
        plot_comparison(compare([one]), tmp_path / "a.nonsense")
