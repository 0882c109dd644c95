"""`rlcore prove`: what holds is said to hold, and what is broken on purpose is found and named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tomli_w
from rlcore_plugin_testing.faults.killer import Strike
from rlcore_plugin_testing.prove import storage
from rlcore_plugin_testing.prove.runs import Runs
from rlcore_plugin_testing.prove.subject import make_subject
from rlcore_plugin_testing.prove.table import Row, failed, table
from rlcore_plugin_testing.small_run import TOY_CONFIG

from rlcore.config.sections import load_config
from rlcore.run.build import build

PARTS = str(Path(__file__).parents[1] / "faults" / "parts.py")


@pytest.fixture
def toy(workdir):
    """Write a config of toy parts."""

    def write(**sections):
        path = workdir / "config.toml"
        path.write_text(tomli_w.dumps({**TOY_CONFIG, "run": {**TOY_CONFIG["run"], "total_frames": 640}, **sections}))
        return path

    return write


@pytest.fixture
def runs(workdir, launcher):
    """Train the shortened run of a config."""

    def make(path):
        (workdir / "scratch").mkdir()
        subject = make_subject(path, (), (), (), workdir / "scratch", iterations=6)
        return Runs(subject, launcher, lambda what: None)

    return make


def rows_of(text):
    """Return claim to verdict of a printed table."""
    found = re.findall(r"^(\S.*?) {2,}(holds|does not hold|not claimed|measured) ", text, re.MULTILINE)
    return dict(found)


def test_a_config_of_toy_parts_is_proved(cli, toy):
    outcome = cli("prove", toy(), "--quick", "--kills", 3)
    assert outcome.code == 0, outcome.out + outcome.err
    rows = rows_of(outcome.out)
    assert rows.pop("time spent on saving") == "measured"
    assert set(rows.values()) == {"holds"}
    assert len(rows) == 7
    assert not list(Path().glob("runs*")), "nothing is left where it was called"


@pytest.mark.slow
def test_a_config_of_ppo_is_proved(cli, write_config):
    outcome = cli(
        "prove", write_config(run={"total_frames": 3200}, evaluator={"use": "episodes", "every": 320}), "--quick"
    )
    assert outcome.code == 0, outcome.out + outcome.err
    assert len(rows_of(outcome.out)) == 8


def test_a_hook_that_hides_its_state_is_named(runs, toy):
    proof = runs(toy(plugins={"files": [PARTS]}, hook=[{"use": "hidden"}]))
    for row in (proof.stopped(), proof.killed(6)):
        assert row.verdict == "does not hold", row
        assert re.search(r"first difference: frame \d+: rewards", row.figures)
        assert "these save no state: hook.hidden" in row.figures
    assert proof.again().verdict == "holds", "without an interruption nothing is lost"


LATE, EARLY = Strike(point="post_optim", count=10**6), Strike(point="post_optim", count=1)


@pytest.mark.parametrize(
    ("drawn", "claim", "figures"),
    [
        ([[LATE, LATE], [EARLY, EARLY]], "killed 2 times and", "over 2 runs, "),
        ([[EARLY, LATE], [LATE]], "killed 1 time and", "over 2 runs, 0 iterations repeated, 1 of 2 came after the end"),
    ],
    ids=["another takes its place", "no other comes"],
)
def test_kills_that_come_too_late_are_not_counted(runs, toy, monkeypatch, drawn, claim, figures):
    proof = runs(toy())
    monkeypatch.setattr(proof, "_strikes", lambda kills, draw: drawn.pop(0))
    row = proof.killed(2)
    assert row.verdict == "holds"
    assert row.claim.startswith(claim)
    assert figures in row.figures


def test_what_a_run_does_not_claim_is_no_failure(runs, toy):
    changed = {"env": {"use": "gymnasium", "id": "Measured-v0"}, "model": {"use": "mlp", "hidden": [4]}}
    proof = runs(toy(plugins={"files": [PARTS]}, **changed))
    rows = [proof.environment(), proof.stopped()]
    assert [row.verdict for row in rows] == ["not claimed", "not claimed"]
    assert "resumes at an episode boundary: env 'Measured-v0'" in rows[0].figures
    assert not failed(rows)


def test_a_run_that_cannot_be_trained_is_an_error(cli, toy):
    assert cli("prove", toy(model={"use": "nothing"})).code == 2


@pytest.fixture
def saved(toy, workdir):
    """A run with its checkpoints."""
    run = build(load_config(toy(), ["run.total_frames=32"]))
    run.trainer.train()
    return run, run.folder / "checkpoints"


def test_a_store_that_checks_nothing_is_found_out(saved, workdir, monkeypatch):
    run, checkpoints = saved
    (workdir / "whole").mkdir()
    assert storage.damage(run, checkpoints, workdir / "whole", 20, lambda what: None).verdict == "holds"
    read = lambda store, entry, into: {"model": dict(store._backend.load(entry.path))}  # noqa: E731
    monkeypatch.setattr(storage.Store, "load", read)
    row = storage.damage(run, checkpoints, workdir, 20, lambda what: None)
    assert row.verdict == "does not hold"


def test_a_store_that_forgets_to_sync_is_found_out(saved, workdir, monkeypatch):
    run, checkpoints = saved
    (workdir / "whole").mkdir()
    assert storage.power_cuts(run, checkpoints, workdir / "whole", 200, lambda what: None).verdict == "holds"
    monkeypatch.setattr("rlcore.checkpoints.store.sync_folder", lambda folder: None)
    row = storage.power_cuts(run, checkpoints, workdir, 200, lambda what: None)
    assert row.verdict == "does not hold"
    assert re.search(r"frame \d+ is lost", row.figures)


def test_what_a_power_cut_loses_is_told_by_the_clock_of_the_run(toy, workdir, monkeypatch):
    run = build(load_config(toy(run={"name": "toy", "total_updates": 4})))
    run.trainer.train()
    monkeypatch.setattr("rlcore.checkpoints.store.sync_folder", lambda folder: None)
    row = storage.power_cuts(run, run.folder / "checkpoints", workdir, 200, lambda what: None)
    assert re.search(r"update [45] is lost", row.figures)


@pytest.mark.slow
def test_a_checkpoint_that_is_unpickled_is_found_out(saved, workdir, monkeypatch, tmp_path):
    """A back end that unpickles what it reads, in the process that is listened to."""
    run, checkpoints = saved
    config = run.folder / "config.toml"
    assert storage.opening(config, checkpoints, lambda what: None).verdict == "holds"
    (tmp_path / "sitecustomize.py").write_text(
        "import pickle, threading\n"
        "from rlcore_plugin_testing import toy_parts\n"
        "load = toy_parts.ToyCheckpointer.load\n"
        "def unpickling(self, folder):\n"
        "    pickle.loads(b'cos\\ngetcwd\\n.')\n"
        "    return load(self, folder)\n"
        "toy_parts.ToyCheckpointer.load = unpickling\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    row = storage.opening(config, checkpoints, lambda what: None)
    assert row.verdict == "does not hold"
    assert "pickle.find_class" in row.figures


def test_the_table_keeps_its_columns():
    rows = [Row("short", "holds", "one two"), Row("a longer claim", "does not hold", "word " * 40)]
    lines = table(rows).splitlines()
    assert lines[0] == "short           holds          one two"
    assert all(line.startswith(" " * 31) for line in lines[2:])
    assert failed(rows)
    assert not failed(rows[:1])
