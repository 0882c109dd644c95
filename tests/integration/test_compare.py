"""`rlcore compare`, as typed: the tables, the picture, and what is refused."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

EVALUATED = {"evaluator": {"use": "episodes", "episodes": 2, "every": 32}}


@pytest.fixture
def runs(cli, write_config):
    """Two settings of two seeds each."""
    names = []
    for rate in (0.01, 0.02):
        path = write_config(optimizer=[{"use": "adam", "lr": rate}], **EVALUATED)
        for seed in (1, 2):
            names.append(f"runs/rate-{rate}-seed-{seed}")
            changes = ["--set", f"run.seed={seed}", "--set", f"run.name=rate-{rate}-seed-{seed}"]
            assert cli("train", path, "--quiet", *changes).code == 0
    return names


def test_compare_prints_a_table_and_writes_every_format(cli, runs):
    outcome = cli("compare", *runs, "--threshold", "1")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[0] == "evaluation/return at frame 96, CartPole-v1"
    assert [line.split("|")[1].strip() for line in lines if line.startswith("| lr=")] == [
        "lr=0.01",
        "lr=0.02",
        "lr=0.01 over lr=0.02",
    ]
    assert "frames to 1" in outcome.out

    outcome = cli("compare", *runs, "--output", "both")
    names = ["compare.md", "compare.csv", "compare.tex", "compare.png"]
    assert outcome.out.split() == [f"both/{name}" for name in names]
    rows = list(csv.DictReader(Path("both/compare.csv").read_text().splitlines()))
    figures = {(row["setting"], row["against"], row["figure"]): row for row in rows}
    mean = figures["lr=0.01", "", "mean"]
    assert float(mean["low"]) <= float(mean["value"]) <= float(mean["high"])
    assert (mean["runs"], mean["frame"]) == ("2", "96")
    assert 0 <= float(figures["lr=0.01", "lr=0.02", "probability_of_improvement"]["value"]) <= 1
    latex = Path("both/compare.tex").read_text()
    assert r"\begin{tabular}{lrrrrrr}" in latex
    assert "lr=0.01 & 2 &" in latex
    assert Path("both/compare.png").read_bytes().startswith(b"\x89PNG")

    assert cli("compare", *runs, "--format", "csv").out == Path("both/compare.csv").read_text()


def test_compare_refuses_what_it_cannot_write(cli, runs):
    for arguments, message in (
        (["--output", "a.nonsense"], "--output a.nonsense: a file ends in one of .md, .csv, .tex, .png, .svg, .pdf"),
        (["--output", "a.md", "--format", "csv"], "--output a.md does not end as --format csv does"),
        (["--output", "absent/a.md"], "'absent/a.md' cannot be written"),
    ):
        outcome = cli("compare", runs[0], *arguments)
        assert outcome.code == 2
        assert outcome.err.startswith("error: ")
        assert message in outcome.err
    assert cli("compare", runs[0], "runs/absent").err.startswith("error: 'runs/absent' is not a run folder")


def test_names_cannot_end_a_cell(cli, write_config):
    path = write_config(**EVALUATED)
    assert cli("train", path, "--quiet", "--set", "run.name=one").code == 0
    Path("runs/one").rename("runs/50% | a_b")
    assert r"| 50% \| a_b |" in cli("compare", "runs/50% | a_b").out
    assert r"50\% | a\_b & 1" in cli("compare", "runs/50% | a_b", "--format", "latex").out
