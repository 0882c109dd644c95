"""No part ends a run without a word: what it raises has an exit code, a name and a truthful status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXITS = str(Path(__file__).with_name("exits.py"))
RUN = Path("runs/tiny")
KINDS = {"exit": "SystemExit", "base": "BaseException: gone", "generator": "GeneratorExit", "mute": "Mute"}


@pytest.fixture
def leaving(write_config, monkeypatch):
    """Write the config of a run that can use every part of `exits.py`; their faults are armed."""
    monkeypatch.setenv("TEST_FAULTS", "1")

    def write(**sections):
        return write_config(plugins={"files": [EXITS]}, **sections)

    return write


def env(where, kind="exit", **kwargs):
    return {"use": "gymnasium", "id": "exits:Leaving-v0", "kwargs": {"where": where, "kind": kind, **kwargs}}


def status():
    return json.loads((RUN / "status.json").read_text())


def assert_goes_on(cli, path):
    """The state before stands: without the fault the run goes on to its end."""
    os.environ["TEST_FAULTS"] = "0"
    outcome = cli("train", path, "--quiet", "--resume")
    assert outcome.code == 0, outcome.err
    assert (status()["state"], status()["frames"]) == ("done", 96)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", ["step", "reset"])
def test_f1_whatever_an_env_raises_is_an_error_of_the_env(cli, leaving, where, kind):
    path = leaving(env=env(where, kind))
    outcome = cli("train", path, "--quiet")
    assert outcome.code == 3, outcome.err
    assert "error: env 'exits:Leaving-v0', number 0, raised" in outcome.err
    assert KINDS[kind].partition(":")[0] in outcome.err
    assert status()["state"] == "failed-resumable"
    assert "exits:Leaving-v0" in status()["reason"]
    assert status()["frames"] == (32 if where == "step" else 0)
    assert_goes_on(cli, path)


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_the_constructor_of_an_env_raises_refuses_the_run(cli, leaving, kind):
    outcome = cli("train", leaving(env=env("constructor", kind)), "--quiet")
    assert outcome.code == 3
    assert "error: env 'exits:Leaving-v0' cannot be made: " + KINDS[kind] in outcome.err
    assert not RUN.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_an_env_that_cannot_be_closed_is_named(cli, leaving, kind):
    outcome = cli("train", leaving(env=env("close", kind)), "--quiet")
    assert outcome.code == 0, (
        "no error of an env that is tried out ends a run, and those of the run are closed at its end"
    )
    assert "env 'exits:Leaving-v0', number 0, raised" in outcome.err


@pytest.mark.parametrize("kind", KINDS)
def test_what_an_env_raises_in_an_evaluation_is_an_error_of_the_env(cli, leaving, kind):
    # tried out for 60 steps, trained for 32, evaluated for 7 each time
    evaluator = {"use": "episodes", "episodes": 8, "num_envs": 1, "every": 32}
    outcome = cli("train", leaving(env=env("step", kind, at=50), evaluator=evaluator), "--quiet")
    assert outcome.code == 3, outcome.err
    assert status()["state"] == "failed-resumable"
    assert "exits:Leaving-v0" in status()["reason"]


@pytest.mark.parametrize("kind", [*KINDS, "stop"])
@pytest.mark.parametrize("point", ["post_steps", "post_optim", "state_dict"])
def test_d10_whatever_a_hook_raises_is_an_error_of_the_hook(cli, leaving, point, kind):
    path = leaving(hook=[{"use": "leaves", "point": point, "kind": kind}])
    outcome = cli("train", path, "--quiet")
    assert outcome.code == 7, outcome.err
    assert "leaves" in outcome.err
    assert status()["state"] == "failed-resumable"
    assert status()["checkpoint"].startswith("000000000032-" if point != "post_steps" else "0000000000")
    assert_goes_on(cli, path)


@pytest.mark.parametrize("point", ["post_steps", "state_dict"])
def test_d10_an_error_that_takes_no_notes_is_that_of_its_hook_all_the_same(cli, leaving, point):
    path = leaving(hook=[{"use": "leaves", "point": point, "kind": "unnamed"}])
    outcome = cli("train", path, "--quiet")
    assert outcome.code == 7, outcome.err
    assert (status()["state"], status()["reason"]) == ("failed-resumable", "Unnamed: no name")
    assert_goes_on(cli, path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("point", ["shutdown", "on_exception"])
def test_what_a_hook_raises_at_the_end_changes_nothing(cli, leaving, point, kind):
    hooks = [{"use": "leaves", "point": point, "kind": kind, "from_frame": 0}]
    outcome = cli("train", leaving(hook=hooks), "--quiet")
    assert outcome.code == 0, outcome.err
    assert status()["state"] == "done"


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_the_constructor_of_a_hook_raises_refuses_the_run_and_names_the_hook(cli, forked_cli, leaving, kind):
    path = leaving(hook=[{"use": "leaves", "point": "constructor", "kind": kind}])
    if kind in ("exit", "generator"):
        outcome = cli("train", path, "--quiet")
        assert outcome.code == 2
        assert f"hook 'leaves' (exits.py loose file) raised {KINDS[kind]}" in outcome.err
    else:
        outcome = forked_cli("train", path, "--quiet")
        assert outcome.code == 1
        assert "raised while building hook 'leaves' (exits.py loose file)" in outcome.err
    assert not RUN.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_that_a_hook_refuses_by_any_means_is_an_error_that_names_it(cli, leaving, kind):
    path = leaving(hook=[{"use": "leaves", "point": "load_state_dict", "kind": kind}])
    assert cli("train", path, "--quiet", "--until", "64").code == 0
    outcome = cli("train", path, "--quiet", "--resume")
    assert outcome.code == 5, outcome.err
    assert "the state of hook.leaves in the checkpoint does not fit: " in outcome.err
    assert status()["state"] == "stopped-resumable", "the resume has not begun, so the state of the run is as it was"
    assert_goes_on(cli, path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", ["constructor", "log_metrics", "state_dict", "close"])
def test_whatever_a_logger_raises_the_run_goes_on(cli, leaving, where, kind):
    outcome = cli(
        "train", leaving(logger=[{"use": "leaving", "where": where, "kind": kind}, {"use": "csv"}]), "--quiet"
    )
    assert outcome.code == 0, outcome.err
    assert (status()["state"], status()["frames"]) == ("done", 96)
    assert "leaving" in outcome.err
    assert len((RUN / "metrics.csv").read_text().splitlines()) > 10


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_a_logger_raises_at_a_resume_the_run_goes_on(cli, leaving, kind):
    path = leaving(logger=[{"use": "leaving", "where": "load_state_dict", "kind": kind}])
    assert cli("train", path, "--quiet", "--until", "64").code == 0
    outcome = cli("train", path, "--quiet", "--resume")
    assert outcome.code == 0, outcome.err
    assert status()["state"] == "done"


def test_a_model_that_exits_is_no_success(cli, leaving, monkeypatch):
    monkeypatch.setattr("rlcore_plugin_ppo.loss.PPOLoss.forward", lambda *arguments: sys.exit(0))
    outcome = cli("train", leaving(), "--quiet")
    assert outcome.code == 1
    assert status()["state"] == "failed-resumable"
    assert status()["reason"] == "SystemExit: 0"


def test_the_process_of_a_run_whose_env_exits_says_so(leaving):
    """The same through the interpreter, whose own exit code counts."""
    done = subprocess.run(
        [sys.executable, "-m", "rlcore", "train", str(leaving(env=env("step"))), "--quiet"],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 3, done.stderr
    assert "continue with: rlcore train --resume runs/tiny" in done.stderr
    assert status()["state"] == "failed-resumable"


@pytest.mark.parametrize(("where", "kind"), [("step", "exit"), ("reset", "mute")])
def test_whatever_an_env_raises_in_a_worker_is_an_error_of_the_env(cli, leaving, where, kind):
    # a fork server that an earlier test started has the environment of that test, in which nothing is armed
    workers = {
        "use": "parallel:workers",
        "processes": "always",
        "num_workers": 1,
        "frames_per_batch": 32,
        "start_method": "spawn",
    }
    path = leaving(env=env(where, kind) | {"num_envs": 2}, collector=workers)
    outcome = cli("train", path, "--quiet")
    assert outcome.code == 3, outcome.err
    assert "error: collector worker " in outcome.err
    assert "exits:Leaving-v0" in outcome.err
    assert status()["state"] == "failed-resumable"
