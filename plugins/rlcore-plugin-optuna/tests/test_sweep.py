"""The command: trials that are trained as processes, a study that goes on, and what is refused."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest
import tomli_w
from rlcore_plugin_optuna.study_file import read_study
from rlcore_plugin_optuna.study_folder import go_on
from rlcore_plugin_testing.small_run import TOY_CONFIG

import rlcore
from rlcore.cli.command_line import main
from rlcore.files import in_use
from rlcore.run_folder import read_status


def trials_of(path):
    """Return the trials of a study as (number, state, value, parameters)."""
    return [(t.number, t.state.name, t.value, t.params) for t in go_on(read_study(path)).trials]


def test_a_study_is_trained_told_and_its_best_config_written(write_study, refused, capsys, tmp_path):
    path = write_study()
    assert main(["sweep", str(path), "--jobs", "2"]) == 0
    out = capsys.readouterr().out
    trials = trials_of(path)
    assert [(number, state) for number, state, _, _ in trials] == [(0, "COMPLETE"), (1, "COMPLETE")]
    best = max(trials, key=lambda trial: trial[2])
    assert f"best: trial {best[0]}" in out

    config = rlcore.load_config("sweeps/search/best.toml").resolved()
    assert config["optimizer"][0]["lr"] == best[3]["optimizer.lr"]
    assert config["buffer"]["epochs"] == best[3]["buffer.epochs"]
    assert "hook" not in config
    assert config["run"]["name"] == "search-best"

    assert "study folder 'sweeps/search' exists already" in refused("sweep", path)
    before = {file: file.read_bytes() for file in tmp_path.rglob("status.json")}
    assert main(["sweep", str(path), "--resume"]) == 0, "nothing is left to train"
    assert {file: file.read_bytes() for file in tmp_path.rglob("status.json")} == before

    shutil.rmtree(f"sweeps/search/runs/trial-{best[0]}")
    assert f"the best trial is {best[0]}, and its run folder" in refused("sweep", path, "--resume")

    (tmp_path / "toy.toml").write_text(tomli_w.dumps({**TOY_CONFIG, "evaluator": {"use": "episodes", "every": 16}}))
    said = refused("sweep", write_study(space={"optimizer.lr": {"low": 1e-3, "high": 2e-1}}), "--resume")
    assert "'sweeps/search' is of another study" in said
    assert "space.optimizer.lr.high = 0.2 here, 0.1 in the study" in said
    assert "evaluator.every = 16 here, 32 in the study" in said


@pytest.mark.slow
def test_a_trial_that_fails_says_why_and_three_of_them_end_the_sweep(write_study, caplog):
    path = write_study(study={"trials": 9}, space={"optimizer.lr": [1e300, 2e300]})
    assert main(["sweep", str(path), "--jobs", "2"]) == 1
    states = Counter(state for _, state, _, _ in trials_of(path))
    assert states["FAIL"] in (3, 4)
    assert set(states) == {"FAIL"}
    assert "trial 0 failed: error: " in caplog.text


def test_a_dry_run_writes_nothing(write_study, tmp_path):
    assert main(["sweep", str(write_study()), "--dry-run"]) == 0
    assert not (tmp_path / "sweeps").exists()


def hashes(folder):
    """Return how far a run is, and the hash over the state in its latest checkpoint."""
    latest = max((folder / "checkpoints").glob("0*"))
    manifest = json.loads((latest / "manifest.json").read_text())
    return manifest["progress"], manifest["digest"]


def begin_and_kill(path, folder):
    """Begin a study, kill the command by SIGKILL once its run has saved what it trained; return the run's process."""
    command = subprocess.Popen([sys.executable, "-m", "rlcore", "sweep", str(path)])
    deadline = time.monotonic() + 120
    while not [place for place in folder.glob("checkpoints/0*") if int(place.name.partition("-")[0]) > 0]:
        assert time.monotonic() < deadline
        assert command.poll() is None
        time.sleep(0.01)
    command.kill()
    command.wait()
    return read_status(folder)["pid"]


@pytest.mark.slow
@pytest.mark.parametrize("kills_run", [True, False], ids=["both killed", "command killed"])
def test_a_study_that_is_killed_goes_on_as_if_nothing_had_happened(kills_run, write_study, tmp_path, caplog):
    long = ["run.total_frames=4000", "checkpoint.every=160", "evaluator.every=1000"]
    path = write_study(study={"trials": 1, "set": long})
    assert main(["sweep", str(path)]) == 0
    undisturbed = trials_of(path)
    run = tmp_path / "sweeps" / "search" / "runs" / "trial-0"
    expected = hashes(run)
    (tmp_path / "sweeps").rename(tmp_path / "undisturbed")

    pid = begin_and_kill(path, run)
    if kills_run:
        os.kill(pid, signal.SIGKILL)
    else:
        deadline = time.monotonic() + 30
        while in_use(run):
            assert time.monotonic() < deadline, "it trains on"
            time.sleep(0.05)
        status = read_status(run)
        assert (status["state"], status["reason"]) == ("stopped-resumable", "SIGTERM")
    assert [state for _, state, _, _ in trials_of(path)] == ["RUNNING"]
    assert main(["sweep", str(path), "--resume"]) == 0
    assert "resumed at frame" in caplog.text
    assert trials_of(path) == undisturbed
    assert hashes(run) == expected


@pytest.mark.slow
def test_a_stop_by_a_signal_saves_the_runs_and_says_how_to_go_on(write_study, tmp_path):
    path = write_study(study={"set": ["run.total_frames=100_000", "checkpoint.every=160"]})
    command = subprocess.Popen(
        [sys.executable, "-m", "rlcore", "sweep", str(path), "--jobs", "2"], stderr=subprocess.PIPE, text=True
    )
    runs = [tmp_path / "sweeps" / "search" / "runs" / f"trial-{number}" for number in (0, 1)]
    deadline = time.monotonic() + 120
    while not all(list(run.glob("checkpoints/0*/manifest.json")) for run in runs):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    command.send_signal(signal.SIGINT)
    said = command.communicate(timeout=60)[1]
    assert command.returncode == 130
    assert f"continue with: rlcore sweep {path} --resume" in said
    assert [read_status(run)["state"] for run in runs] == ["stopped-resumable"] * 2
    assert [state for _, state, _, _ in trials_of(path)] == ["RUNNING", "RUNNING"]


FAILS = """
from rlcore import Component, hookimpl


class Fails:
    def __init__(self, config, context):
        pass

    @hookimpl
    def setup(self, trainer):
        raise RuntimeError("it has a bug")


@hookimpl
def provide_components():
    return [Component("hook", "fails", Fails, summary="fails")]
"""


def test_a_bug_in_a_hook_is_told_by_its_error_and_files_beside_shadow_no_library(
    write_study, tmp_path, caplog, monkeypatch
):
    monkeypatch.setattr(sys, "argv", ["rlcore"])  # as the script, which does not import from the working directory
    (tmp_path / "fails.py").write_text(FAILS)
    (tmp_path / "tomllib.py").write_text("raise SystemExit('this is not the standard library')")
    changes = ['plugins.files=["fails.py"]', "hook.0.use=fails:fails"]
    path = write_study(study={"trials": 1, "set": changes})
    assert main(["sweep", str(path)]) == 1
    assert "trial 0 failed: RuntimeError: it has a bug" in caplog.text
