"""Curves of runs, from their folders."""

from __future__ import annotations

import numpy as np
import pytest
from rlcore_plugin_reports.curves import EVALUATION, TRAINING, mean_and_spread, panels, read_metrics
from rlcore_plugin_reports.plotting import plot_runs

from rlcore import ConfigError


def csv_of(folder, rows, text=""):
    folder.mkdir()
    lines = ["frames,key,value", *[f"{frames},{key},{value}" for frames, key, value in rows]]
    (folder / "metrics.csv").write_text("\n".join(lines) + "\n" + text)
    return folder


def test_metrics_are_read_even_when_a_crash_cut_the_last_row(tmp_path):
    run = csv_of(tmp_path / "run", [(0, "a", 1.5), (10, "a", 2), (10, "b", "nan")], "20,a")
    curves = read_metrics(run)
    assert curves["a"] == {0: 1.5, 10: 2.0}
    assert np.isnan(curves["b"][10])


def test_several_curves_become_mean_and_range_where_all_of_them_are():
    grid, mean, lowest, highest = mean_and_spread([{0: 0.0, 20: 20.0}, {10: 0.0, 30: 20.0}])
    assert grid.tolist() == [10, 20]
    assert (mean.tolist(), lowest.tolist(), highest.tolist()) == ([5, 15], [0, 10], [10, 20])


def test_a_figure_is_drawn_of_one_and_of_several_runs(tmp_path):
    rows = [(0, "episode/return", 1), (10, "episode/return", 2), (10, "evaluation/return", 5)]
    runs = [csv_of(tmp_path / name, rows) for name in ("a", "b")]
    for number in (1, 2):
        file = plot_runs(runs[:number], tmp_path / f"{number}.png")
        assert file.read_bytes().startswith(b"\x89PNG")
        assert file.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("recorded", "shown"),
    [
        (["episode/return", "train/loss"], [key for key, _ in TRAINING]),
        (["train/loss_q", "train/loss_actor", "train/loss_q/std", "train/loss_value"], ["loss_actor", "loss_q"]),
        (["train/loss", "train/grad_norm", "train/lr"], ["loss", "grad_norm"]),
        (["train/loss"], ["loss", "episode/length"]),
        ([], [key for key, _ in TRAINING]),
    ],
)
def test_losses_are_shown_of_runs_that_train_on_no_episode(recorded, shown):
    found = panels(recorded)
    assert [key.removeprefix("train/") for key, _ in found] == [*shown, *(key for key, _ in EVALUATION)]


def test_a_run_without_loggers_has_the_curve_of_its_evaluations(tmp_path):
    (tmp_path / "evaluations.csv").write_text("frames,seed,return,length\n10,1,1.0,3\n10,2,2.0,5\n20,1,4.0,8\n20,2,")
    assert read_metrics(tmp_path) == {
        "evaluation/return": {10: 1.5, 20: 4.0},
        "evaluation/length": {10: 4.0, 20: 8.0},
    }
    assert plot_runs([tmp_path], tmp_path / "curves.png").is_file()


def test_a_figure_that_cannot_be_drawn_says_why(tmp_path):
    run = csv_of(tmp_path / "run", [(0, "episode/return", 1)])
    nothing = r"absent has no metrics.csv and no evaluations.csv; add a section \[\[logger\]\]"
    with pytest.raises(ConfigError, match=nothing):
        plot_runs([tmp_path / "absent"], tmp_path / "a.png")
    with pytest.raises(ConfigError, match=r"absent/a.png' cannot be written"):
        plot_runs([run], tmp_path / "absent" / "a.png")
    with pytest.raises(ConfigError, match=r"a.nonsense' cannot be written"):
        plot_runs([run], tmp_path / "a.nonsense")
