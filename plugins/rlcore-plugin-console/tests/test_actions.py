"""What the buttons do to real trainings: each is a process of `rlcore`."""

from __future__ import annotations

import shutil
import time
import tomllib
from collections.abc import Callable

import pytest

from rlcore.cli.command_line import main
from rlcore.run_folder import read_config, read_status

SMALL = ("collector.frames_per_batch=64", "buffer.minibatch_size=64", "buffer.epochs=1", "evaluator.episodes=1")


@pytest.fixture
def trained(console, runs, monkeypatch):
    """Return a console over the folder with one small finished run, `first`."""
    monkeypatch.chdir(runs)
    for recorded in runs.iterdir():
        shutil.rmtree(recorded)
    assert main(["init", "--example", "ppo-cartpole"]) == 0
    sets = [f"--set={each}" for each in (*SMALL, "run.name=first", "run.folder=.", "run.total_frames=128")]
    assert main(["train", "ppo-cartpole.toml", "--quiet", *sets]) == 0
    console.server.site.catalogue.look_again()
    return console


def until(holds: Callable[[], bool], seconds: float) -> None:
    """Wait until something holds.

    Raises:
        TimeoutError: it does not, after so many seconds.
    """
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds} s")
        time.sleep(0.1)


def jobs(console):
    return {job["run"]: job for job in console.get("/api/runs")["jobs"]}


def ended(console, run):
    """Return the job of a run once it has ended."""
    until(lambda: jobs(console)[run]["state"] in ("ended", "failed"), 120)
    return jobs(console)[run]


@pytest.mark.slow
def test_a_run_goes_on_longer_is_stopped_with_a_checkpoint_and_resumed(trained, runs):
    status, done = trained.post("/api/do", {"action": "longer", "run": "first", "total": 10_000_000})
    assert (status, done["commands"]) == (200, ["rlcore train --resume=first --set=run.total_frames=10000000"])
    assert trained.post("/api/do", {"action": "resume", "run": "first"})[0] == 422
    until(lambda: read_status(runs / "first").get("state") == "running", 120)
    until(lambda: (runs / "first" / "output.log").stat().st_size > 0, 60)
    status, refused = trained.post("/api/do", {"action": "delete", "run": "first", "typed": "first"})
    assert (status, "stop it first" in refused) == (422, True)
    status, done = trained.post("/api/do", {"action": "stop", "run": "first"})
    assert (status, done["commands"][0].startswith("kill -TERM ")) == (200, True)
    assert ended(trained, "first")["state"] == "ended"
    stopped = read_status(runs / "first")
    assert stopped["state"] == "stopped-resumable"
    # once more, in a process that the end of the console does not end
    total = stopped["frames"] + 64
    assert trained.post("/api/do", {"action": "longer", "run": "first", "total": total})[0] == 200
    trained.server.shutdown()
    until(lambda: read_status(runs / "first")["state"] == "done", 120)
    assert read_status(runs / "first")["frames"] >= total


@pytest.mark.slow
def test_forks_and_fresh_starts_wait_for_each_other_and_wrong_keys_are_refused_at_once(trained, runs):
    checkpoint = trained.get("/api/run?run=first")["checkpoints"][0]["name"]
    wrong = {"action": "again", "run": "first", "name": "wrong", "changes": [["run.sed", "2"]], "wait": True}
    assert "did you mean 'seed'" in trained.post("/api/do", wrong)[1]
    changes = [["run.total_frames", "10_000_000"], ["optimizer.0.lr", "1e-4"]]
    fork = {"action": "fork", "run": "first", "checkpoint": checkpoint, "name": "fork", "changes": changes}
    assert trained.post("/api/do", fork)[0] == 200
    again = {"action": "again", "run": "first", "name": "again", "changes": [["run.seed", "2"]], "wait": True}
    assert "waits in line" in trained.post("/api/do", again)[1]["said"]
    assert trained.post("/api/do", {**again, "name": "never"})[0] == 200
    waiting = jobs(trained)["never"]
    assert (waiting["state"], jobs(trained)["again"]["state"]) == ("waiting", "waiting")
    assert trained.post("/api/do", {"action": "forget", "job": waiting["number"]})[1]["said"] == "never waits no more"
    until(lambda: read_status(runs / "fork").get("state") == "running", 120)
    assert trained.post("/api/do", {"action": "stop", "run": "fork"})[0] == 200
    assert (ended(trained, "fork")["state"], ended(trained, "again")["state"]) == ("ended", "ended")
    config = read_config(runs / "fork")
    assert (config["optimizer"][0]["lr"], config["run"]["name"]) == (1e-4, "fork")
    assert read_status(runs / "again")["frames"] == 128
    ours, theirs = ((runs / name / "evaluations.csv").read_text() for name in ("fork", "first"))
    assert ours.startswith(theirs)
    assert (runs / "fork" / "run_id").read_text() != (runs / "first" / "run_id").read_text()
    assert tomllib.loads((runs / "again" / "config.toml").read_text())["run"]["seed"] == 2
    assert (runs / "again" / "output.log").is_file()
    assert not any((runs / name).exists() for name in ("wrong", "never"))
