"""A run of a trial as a process of `rlcore train`: begun, or resumed from its latest checkpoint."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import rlcore
from rlcore.files import in_use
from rlcore.process import start_run
from rlcore.run_folder import last_words, reached_by, read_status
from rlcore_plugin_optuna.space import overrides
from rlcore_plugin_optuna.study_file import StudyFile
from rlcore_plugin_optuna.study_folder import RUNS

# codes of a process that a signal ended, or that a signal stopped with its state saved
_BY_SIGNAL: Final = range(129, 144)
_RESUMABLE: Final = ("stopped-resumable", "failed-resumable")


@dataclass
class RunProcess:
    """A process that trains, or that another process of the command has left training.

    Attributes:
        trial: number of the trial.
        run: which of its runs.
        folder: of the run.
        process: None where another process of the command started it.
        from_frame: where it began.
        printed_before: bytes in the log of the run when the process was started.
    """

    trial: int
    run: int
    folder: Path
    process: subprocess.Popen[bytes] | None
    from_frame: int
    printed_before: int = 0

    @property
    def has_ended(self) -> bool:
        """Whether nobody trains there any more."""
        return not in_use(self.folder) if self.process is None else self.process.poll() is not None

    @property
    def code(self) -> int | None:
        """The exit code; None where it goes on, or is not known."""
        return None if self.process is None else self.process.poll()

    @property
    def was_killed(self) -> bool:
        """Whether a signal ended it."""
        return self.code is not None and (self.code < 0 or self.code in _BY_SIGNAL)

    @property
    def frame(self) -> int:
        """How far the run is, as its status says."""
        return frame_of(self.folder)

    def send(self, number: int) -> None:
        """Send it a signal, if it is a process of ours."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def last_words(self) -> str:
        """Return why it failed, as far as it said so."""
        pid = None if self.process is None else self.process.pid
        return last_words(log_of(self.folder), self.printed_before, self.folder, pid)


def name_of(file: StudyFile, trial: int, run: int) -> str:
    """Return the name of a run."""
    return f"trial-{trial}" if file.study.seeds == 1 else f"trial-{trial}-run-{run}"


def folder_of(file: StudyFile, trial: int, run: int) -> Path:
    """Return the folder of a run."""
    return file.place / RUNS / name_of(file, trial, run)


def log_of(folder: Path) -> Path:
    """Return the file with what the processes of a run print."""
    return folder.with_name(f"{folder.name}.log")


def frame_of(folder: Path) -> int:
    """Return how far a run is, as its status says; 0 where it has none."""
    return reached_by(read_status(folder))


def is_done(folder: Path) -> bool:
    """Return whether a run came to its end."""
    return read_status(folder).get("state") == "done"


def settings_of(file: StudyFile, trial: int, run: int, chosen: dict[str, Any]) -> list[str]:
    """Return the overrides of the base config that make it the config of a run."""
    base = rlcore.load_config(file.study.config, file.study.set)
    hook = f"hook.{len(base.raw.values.get('hook', []))}"
    return [
        *file.study.set,
        *overrides(file, chosen),
        f"run.name={name_of(file, trial, run)}",
        f"run.folder={file.place / RUNS}",
        f"run.seed={base.run.seed + run}",
        f"{hook}.use=optuna:sweep-trial",
        f"{hook}.trial={trial}",
        f"{hook}.run={run}",
    ]


def start(file: StudyFile, trial: int, run: int, chosen: dict[str, Any]) -> RunProcess:
    """Begin a run, or go on with it from its latest checkpoint; one that was killed before any starts over."""
    folder = folder_of(file, trial, run)
    if read_status(folder).get("state") in _RESUMABLE:
        arguments: Sequence[str] = ["--resume", str(folder)]
    else:
        shutil.rmtree(folder, ignore_errors=True)
        arguments = [str(file.study.config), *(f"--set={text}" for text in settings_of(file, trial, run, chosen))]
    with log_of(folder).open("ab") as log:
        printed_before = log.tell()
        process = start_run(["train", *arguments, "--quiet"], log)
    return RunProcess(trial, run, folder, process, frame_of(folder), printed_before)
