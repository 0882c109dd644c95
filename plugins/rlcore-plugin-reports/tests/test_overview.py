"""Headline and tables of the page: evaluations over seeds, frames, speed, links."""

from __future__ import annotations

import json
import math

import pytest
from rlcore_plugin_reports.html.overview import best_of, evaluations, headline, run_rows
from rlcore_plugin_reports.html.settings import settings
from rlcore_plugin_reports.run_files import RunFiles

CONFIG = """
[run]
name = "{name}"
seed = {seed}
total_frames = 100
[env]
id = "CartPole-v1"
[loss]
use = "ppo:ppo"
clip = {clip}
"""


@pytest.fixture
def made(tmp_path):
    """Make run folders of returns by frame, and group them."""

    def make(*returns, clip=(0.2, 0.2, 0.2), status=None, rows=()):
        runs = []
        for number, curve in enumerate(returns):
            folder = tmp_path / f"run{number}"
            folder.mkdir()
            (folder / "config.toml").write_text(CONFIG.format(name=folder.name, seed=number, clip=clip[number]))
            values = [(frames, "evaluation/return", value) for frames, value in curve.items()]
            lines = [f"{frames},{key},{value}" for frames, key, value in [*values, *rows]]
            (folder / "metrics.csv").write_text("\n".join(["frames,key,value", *lines]) + "\n")
            (folder / "status.json").write_text(json.dumps(status or {"state": "done", "frames": 100}))
            runs.append(RunFiles(folder))
        return settings(runs)

    return make


def test_an_evaluation_of_seeds_has_mean_deviation_and_range(made):
    (setting,) = made({0: 1.0, 10: 4.0}, {0: 3.0, 10: 8.0})
    first, last = evaluations(setting)
    assert (first.frames, first.mean, first.low, first.high, first.runs) == (0, 2.0, 1.0, 3.0, 2)
    assert (last.mean, last.deviation) == (6.0, 2.0)


def test_the_range_of_one_run_is_that_of_its_episodes(made):
    rows = [(0, "evaluation/return/min", -5), (0, "evaluation/return/max", 9), (0, "evaluation/length", 7)]
    (setting,) = made({0: 1.0, 10: 4.0}, rows=rows)
    first, last = evaluations(setting)
    assert (first.low, first.high, first.deviation, first.length) == (-5.0, 9.0, None, 7.0)
    assert (last.low, last.high, last.length) == (4.0, 4.0, None)


def test_the_best_is_among_those_that_most_runs_made(made):
    (setting,) = made({0: 900.0, 10: 4.0, 20: 100.0}, {0: 300.0, 10: 8.0})
    found = best_of(evaluations(setting))
    assert found is not None
    assert (found.frames, found.mean) == (10, 6.0)
    assert best_of([]) is None
    assert best_of(evaluations(setting)[:1]) is None, "nothing was trained at frame 0"
    assert [row["best"] for row in run_rows([setting], None)] == [100.0, 8.0]


def test_an_evaluation_that_is_not_a_number_is_left_out(made):
    (setting,) = made({0: math.nan, 10: 2.0})
    assert [each.frames for each in evaluations(setting)] == [10]
    assert run_rows([setting], None)[0]["best"] == 2.0


def test_the_headline_names_the_setting_that_did_best(made):
    found = headline(made({0: 9.0, 10: 1.0}, {0: 9.0, 10: 5.0}, {0: 9.0, 10: 3.0}, clip=(0.1, 0.2, 0.2)), "3 runs")
    setting, best = found["best"]
    assert (setting.name, best.mean) == ("clip=0.2", 4.0)
    assert (found["settings"], found["frames"], found["total_frames"]) == (2, 300, 300)
    assert (found["envs"], found["algorithms"]) == (["CartPole-v1"], ["ppo"])
    assert found["states"] == [("finished", 3)]
    assert found["seconds"] is None


def test_nothing_evaluated_has_no_best(made):
    found = headline(made({}), "run0")
    assert (found["best"], found["last"]) == (None, None)


@pytest.mark.parametrize(
    ("state", "shown"),
    [("stopped-resumable", "stopped"), ("failed-resumable", "failed"), ("failed", "failed"), ("odd", "unknown")],
)
def test_states_are_one_word(made, state, shown):
    assert run_rows(made({}, status={"state": state, "frames": 7}), None)[0]["state"] == shown


def test_frames_of_a_run_that_goes_on_are_the_latest_that_anything_says(made, monkeypatch):
    monkeypatch.setattr("rlcore.run_folder.status.in_use", lambda folder: True)
    (row,) = run_rows(made({0: 1.0, 60: 2.0}, status={"state": "running", "frames": 50}), None)
    assert (row["state"], row["frames"]) == ("running", 60)


def test_speed_and_time_are_those_of_the_training(made):
    (setting,) = made({0: 1.0})
    (run,) = setting.runs
    assert (run.seconds_trained, run.speed) == (None, None)
    lines = ["frames,key,value", "100,time/frames_per_second,50", "300,time/frames_per_second,200", "400,time/x,1", "4"]
    (run.folder / "timings.csv").write_text("\n".join(lines))
    again = RunFiles(run.folder)
    assert again.seconds_trained == pytest.approx(2 + 1)
    assert again.speed == pytest.approx(100)


def test_links_lead_from_the_page_to_the_folders(made, tmp_path):
    (setting,) = made({})
    assert run_rows([setting], tmp_path)[0]["link"] == "./run0/"
    assert run_rows([setting], tmp_path / "run0")[0]["link"] == "./"
    assert run_rows([setting], tmp_path / "else")[0]["link"] == "./../run0/"
    assert run_rows([setting], None)[0]["link"] is None
    odd = tmp_path / "java script:alert(1)#?"
    (tmp_path / "run0").rename(odd)
    (row,) = run_rows(settings([RunFiles(odd)]), tmp_path)
    assert row["link"] == "./java%20script%3Aalert%281%29%23%3F/"
