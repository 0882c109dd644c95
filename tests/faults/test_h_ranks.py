"""H: a process of several that train together dies, hangs, or is told to stop; the run goes on, and loses nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
import tomli_w

from rlcore.checkpoints.manifest import scan
from rlcore.run_folder.status import read_status

CONFIG = {
    "run": {"name": "ranks", "seed": 3, "total_frames": 2048, "device": "cpu"},
    "env": {"use": "gymnasium", "id": "CartPole-v1", "num_envs": 2},
    "model": {"use": "mlp", "hidden": [16]},
    "loss": {"use": "ppo"},
    "estimator": {"use": "gae"},
    "optimizer": [{"use": "adam", "lr": 3e-3}],
    "collector": {"frames_per_batch": 64},
    "buffer": {"epochs": 2, "minibatch_size": 32},
    "evaluator": {"use": "episodes", "every": 512, "episodes": 1},
    "metrics": {"every": 128},
    "logger": [{"use": "csv"}],
    "checkpoint": {"use": "torch", "every": 512},
    "ranks": {"count": 2},
}


class Trained:
    """The command `rlcore train` of a config with ranks.

    Args:
        folder: for the config and the run.
        options: of the command.
        sections: change sections of the config.
    """

    def __init__(self, folder, *options, name="ranks", **sections):
        values = {**CONFIG, **{key: {**CONFIG[key], **keys} for key, keys in sections.items()}}
        if values["env"]["use"] == "testing:faulty":
            del values["env"]["id"]
        values["run"] = {**values["run"], "name": name, "folder": str(folder)}
        self.config, self.folder = folder / f"{name}.toml", folder / name
        self.config.write_text(tomli_w.dumps(values))
        self.output = folder / f"{name}.txt"
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "rlcore", "train", str(self.config), *options],
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def ranks(self):
        """Return the processes of the ranks, in their order."""
        with suppress(OSError, IndexError):
            return children(children(self.process.pid)[0])
        return []

    def wait_for(self, frames, seconds=60):
        """Wait until a checkpoint is there of so many frames or more."""
        until = time.monotonic() + seconds
        while not any(entry.frames >= frames for entry in self.entries()):
            assert time.monotonic() < until, self.text()
            assert self.process.poll() is None, self.text()
            time.sleep(0.01)

    def entries(self):
        return scan(self.folder / "checkpoints").entries if self.folder.is_dir() else []

    def end(self, seconds=120):
        """Return the exit code."""
        return self.process.wait(seconds)

    def text(self):
        return self.output.read_text()

    def result(self):
        """Return what two runs that are equal have in common."""
        return self.entries()[-1].manifest["digest"], (self.folder / "metrics.csv").read_bytes()


def children(process):
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def runs(process):
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def shared_memory_with_a_name(process):
    lines = Path(f"/proc/{process}/maps").read_text().splitlines()
    return [line for line in lines if "/dev/shm/" in line and not line.endswith("(deleted)")]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Return an uninterrupted run of the config."""
    trained = Trained(tmp_path_factory.mktemp("undisturbed"))
    assert trained.end() == 0, trained.text()
    return trained


def test_h1_a_rank_that_is_killed_costs_time_and_nothing_else(undisturbed, tmp_path):
    trained = Trained(tmp_path)
    trained.wait_for(512)
    first = trained.ranks()
    assert not [path for rank in first for path in shared_memory_with_a_name(rank)]  # which could be left behind
    os.kill(first[1], signal.SIGKILL)
    assert trained.end() == 0, trained.text()
    assert "rank 1 was killed by SIGKILL" in trained.text()
    assert trained.result() == undisturbed.result()
    assert not any(map(runs, first))


@pytest.mark.slow
@pytest.mark.parametrize("which", ["first rank", "both ranks", "template"])
def test_h1_whichever_process_is_killed(undisturbed, tmp_path, which):
    trained = Trained(tmp_path)
    trained.wait_for(512)
    ranks = trained.ranks()
    killed = {"first rank": ranks[:1], "both ranks": ranks, "template": children(trained.process.pid)}[which]
    for process in killed:
        os.kill(process, signal.SIGKILL)
    assert trained.end() == 0, trained.text()
    assert trained.result() == undisturbed.result()


@pytest.mark.slow
def test_h1_a_rank_that_stands_still_is_replaced_after_the_deadline(undisturbed, tmp_path):
    trained = Trained(tmp_path, ranks={"deadline": 1.0})
    trained.wait_for(512)
    os.kill(trained.ranks()[1], signal.SIGSTOP)
    assert trained.end() == 0, trained.text()
    assert re.search(r"rank 1 did not move for 1 s", trained.text())
    assert trained.result() == undisturbed.result()


@pytest.mark.slow
def test_h1_ranks_that_die_again_and_again_end_the_run(tmp_path):
    trained = Trained(tmp_path, ranks={"restarts": 2}, env={"use": "testing:faulty", "fault": "kill", "at": 40})
    assert trained.end() == 3, trained.text()
    assert "3 deaths of ranks without progress" in trained.text()
    assert read_status(trained.folder)["state"] == "failed-resumable"


@pytest.mark.slow
def test_h4_ranks_end_with_the_supervisor(tmp_path):
    trained = Trained(tmp_path, run={"total_frames": 1_000_000})
    trained.wait_for(0)
    everybody = [*children(trained.process.pid), *trained.ranks()]
    os.kill(trained.process.pid, signal.SIGKILL)
    until = time.monotonic() + 2.0
    while any(map(runs, everybody)) and time.monotonic() < until:
        time.sleep(0.01)
    assert not any(map(runs, everybody))
    trained.end()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_a_stop_is_agreed_and_the_run_goes_on_from_there(undisturbed, tmp_path, number):
    trained = Trained(tmp_path)
    trained.wait_for(512)
    trained.process.send_signal(number)
    assert trained.end() == 128 + number, trained.text()
    status = read_status(trained.folder)
    assert status["state"] == "stopped-resumable"
    assert status["reason"] == signal.Signals(number).name
    assert trained.entries()[-1].frames == status["frames"]
    again = Trained(tmp_path, "--resume")
    assert again.end() == 0, again.text()
    assert again.result() == undisturbed.result()


@pytest.mark.slow
def test_an_error_of_an_env_is_no_death(tmp_path):
    trained = Trained(tmp_path, env={"use": "testing:faulty", "fault": "raise", "at": 200})
    assert trained.end() == 3, trained.text()
    assert "on purpose" in trained.text()
    assert "all ranks go on" not in trained.text()
    assert read_status(trained.folder)["state"] == "failed-resumable"
