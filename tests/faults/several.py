"""Several processes that train together: the command that starts them, and what can be seen of them."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import tomli_w

from rlcore.checkpoints.manifest import scan

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
        name: of the run.
        under: the module that starts the command as each rank, with its options; empty where rlcore starts the ranks.
        output: file for what is printed.
        sections: change sections of the config.
    """

    def __init__(self, folder, *options, name="ranks", under=(), output=None, **sections):
        values = {**CONFIG, **{key: {**CONFIG[key], **keys} for key, keys in sections.items()}}
        if values["env"]["use"] == "testing:faulty":
            del values["env"]["id"]
        values["run"] = {**values["run"], "name": name, "folder": str(folder)}
        self.config, self.folder = folder / f"{name}.toml", folder / name
        self.config.write_text(tomli_w.dumps(values))
        self.output = folder / (output or f"{name}.txt")
        starter = ["-m", *under] if under else []
        program = [sys.executable, *starter, "-m", "rlcore", "train", str(self.config), *options]
        with self.output.open("ab") as printed:
            self.process = subprocess.Popen(program, stdout=printed, stderr=subprocess.STDOUT)
        self._under = bool(under)

    def ranks(self):
        """Return the processes of the ranks, in their order."""
        with suppress(OSError, IndexError):
            return children(self.process.pid if self._under else children(self.process.pid)[0])
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
