"""The table of metrics on the terminal: when it is printed, and what is in it."""

import re

from rlcore_plugin_testing import make_run

from rlcore.core_hooks.console_table import table


def test_a_metric_is_a_line_with_the_spread_of_its_values():
    row = {
        **{"train/loss": 0.123456789, "train/loss/std": 0.01, "train/loss/min": -1.0, "train/loss/max": 1.0},
        **{"train/loss/count": 15.0, "episode/return": 1234.5, "odd/min": 3.0},
    }
    assert list(table(row)) == [
        "  episode/return        1234.5",
        "  odd/min                    3",
        "  train/loss          0.123457  +- 0.01  (-1 to 1, 15 values)",
    ]
    assert list(table({})) == []


def printed(capsys, *overrides, hook=None, **options):
    sections = {"hook": [{"use": "console-table", **(hook or {})}], "logger": []}
    run = make_run(*overrides, sections=sections, **options)
    run.trainer.train()
    return run, re.split(r"^toy: ", capsys.readouterr().err, flags=re.MULTILINE)[1:]


def test_it_is_printed_once_for_each_row_without_any_logger(capsys):
    run, tables = printed(capsys)
    assert [text.splitlines()[0] for text in tables] == [f"frame {frames} of 64" for frames in (16, 32, 48, 64)]
    value = run.trainer.metrics.latest["episode/return"]
    assert re.search(rf"^  episode/return +{re.escape(f'{value:.6g}')}( |$)", tables[-1], re.MULTILINE)


def test_some_metrics_may_be_chosen(capsys):
    _, tables = printed(capsys, hook={"keys": ["train/", "progress/updates"]})
    names = {line.split()[0] for line in tables[-1].splitlines()[1:]}
    assert names
    assert all(name.startswith("train/") or name == "progress/updates" for name in names)


def test_it_may_come_and_go_at_a_resume_and_does_not_repeat(capsys, tmp_path):
    run = make_run(folder=tmp_path)
    run.trainer.stop_at = 32
    run.trainer.train()
    capsys.readouterr()
    run, tables = printed(capsys, folder=tmp_path, resume=True)
    assert [text.splitlines()[0] for text in tables] == ["frame 48 of 64", "frame 64 of 64"]
    assert run.trainer.parts.provenance.inexact == ()
