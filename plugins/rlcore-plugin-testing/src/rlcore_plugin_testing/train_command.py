"""`rlcore train` of a config in a process of its own, and what can be seen of the run from outside."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import tomli_w

from rlcore.checkpoints.manifest import CheckpointEntry, scan

_LOOK: Final = 0.01

# PPO of a small network on CartPole, whose checkpoints tell how far it is; several processes can share it
CARTPOLE: Final[Mapping[str, Mapping[str, Any] | list[Mapping[str, Any]]]] = {
    "run": {"name": "ranks", "seed": 3, "total_frames": 2048, "device": "cpu"},
    "env": {"use": "gymnasium", "id": "CartPole-v1", "num_envs": 2},
    "model": {"use": "mlp", "hidden": [16]},
    "loss": {"use": "ppo"},
    "estimator": {"use": "gae"},
    "optimizer": [{"use": "adam", "lr": 3e-3}],
    "collector": {"frames_per_batch": 64},
    "buffer": {"epochs": 2, "minibatch_size": 32},
    "metrics": {"every": 128},
    "logger": [{"use": "csv"}],
    "checkpoint": {"use": "torch", "every": 512},
}


class TrainCommand:
    """The command `rlcore train` of a config.

    Args:
        folder: for the config, the run and what is printed.
        sections: of the config; `[run] folder` is set to the folder.
        options: of the command.
        under: the module that starts the command, with its options, such as torchrun's; empty for none.
        output: name of the file for what is printed; default: that of the run.
        start: starts the process, with the arguments of `subprocess.Popen`.

    Attributes:
        config: file.
        folder: of the run.
        output: file with what was printed, errors included; of all commands that name it, one behind the other.
        process: of the command.
    """

    def __init__(
        self,
        folder: Path,
        sections: Mapping[str, Any],
        *options: str,
        under: Sequence[str] = (),
        output: str = "",
        start: Callable[..., subprocess.Popen[bytes]] = subprocess.Popen,
    ) -> None:
        name = sections["run"]["name"]
        self.config, self.folder, self.output = (
            folder / f"{name}.toml",
            folder / name,
            folder / (output or f"{name}.txt"),
        )
        values = {**sections, "run": {**sections["run"], "folder": str(folder)}}
        self.config.write_text(tomli_w.dumps(values), encoding="utf-8")
        starter = ["-m", *under] if under else []
        command = [sys.executable, *starter, "-m", "rlcore", "train", str(self.config), *options]
        with self.output.open("ab") as printed:
            self.process = start(command, stdout=printed, stderr=subprocess.STDOUT)

    def wait_for(self, reached: int, seconds: float = 180) -> None:
        """Wait until a checkpoint is there of so many frames or more, or updates of a run that is counted in them.

        Raises:
            AssertionError: none is in time, or the command has ended; says what it printed.
        """
        self.wait_until(lambda: any(entry.reached >= reached for entry in self.entries()), seconds)

    def wait_until(self, condition: Callable[[], bool], seconds: float = 180) -> None:
        """Wait until something is so while the command runs.

        Raises:
            AssertionError: it is not in time, or the command has ended; says what it printed.
        """
        until = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < until, self.text()
            assert self.process.poll() is None, self.text()
            time.sleep(_LOOK)

    def entries(self) -> list[CheckpointEntry]:
        """Return the checkpoints that are there, in their order."""
        return list(scan(self.folder / "checkpoints").entries) if self.folder.is_dir() else []

    def end(self, seconds: float = 120) -> int:
        """Return the exit code, when the command has ended."""
        return self.process.wait(seconds)

    def text(self) -> str:
        """Return what was printed."""
        return self.output.read_text(encoding="utf-8", errors="replace")

    def result(self) -> tuple[str, bytes]:
        """Return what two runs that are equal have in common: digest of the last checkpoint, and table of metrics."""
        return str(self.entries()[-1].manifest["digest"]), (self.folder / "metrics.csv").read_bytes()


def children(process: int) -> list[int]:
    """Return the processes that a process has started and that are there, in their order.

    Raises:
        OSError: it is gone.
    """
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
