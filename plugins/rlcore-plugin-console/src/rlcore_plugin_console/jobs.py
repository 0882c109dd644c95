"""The trainings that were begun here, and those that wait in line. A training goes on when the console ends."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from rlcore.errors import ConfigError
from rlcore.process import companion, how_it_ended
from rlcore.run_folder import last_words

OUTPUT: Final = "output.log"
_MOST_ENDED: Final = 20


class JobError(ConfigError):
    """A training cannot be begun, or is none that waits."""


@dataclass
class Job:
    """A call of `rlcore` for a run.

    Attributes:
        number: counts up from 1.
        run: its name in the catalogue.
        folder: of the run; need not exist yet.
        arguments: of `rlcore`.
        command: the same as somebody would type it.
        process: None as long as it waits.
        printed_before: size of its output file when the process was started, in bytes.
        said: why it failed; empty before it ended, and where it did not.
        failed: whether it could not be started at all.
    """

    number: int
    run: str
    folder: Path
    arguments: Sequence[str]
    command: str
    process: subprocess.Popen[bytes] | None = None
    printed_before: int = 0
    said: str = ""
    failed: bool = False

    @property
    def state(self) -> str:
        """Where it stands in one word."""
        if self.failed:
            return "failed"
        if self.process is None:
            return "waiting"
        code = self.process.poll()
        return "running" if code is None else "ended" if code == 0 or code > 128 else "failed"


class Jobs:
    """Calls of `rlcore` in the background.

    Args:
        place: the working directory of the calls.
    """

    def __init__(self, place: Path) -> None:
        self._place = place
        self._lock = threading.Lock()
        self._jobs: list[Job] = []
        self._count = 0

    def add(self, run: str, folder: Path, arguments: Sequence[str], command: str, wait: bool) -> Job:
        """Begin a training, or let it wait until no training that was begun here goes on.

        Raises:
            JobError: the run trains or waits already, or the process cannot be started.
        """
        with self._lock:
            if any(job.run == run and job.state in ("waiting", "running") for job in self._jobs):
                raise JobError(f"{run} was begun here already, or waits in line")
            self._count += 1
            job = Job(self._count, run, folder, arguments, command)
            if not wait:
                self._start(job)
            self._jobs.append(job)
            ended = [each for each in self._jobs if each.state in ("ended", "failed")]
            for each in ended[:-_MOST_ENDED]:
                self._jobs.remove(each)
        self.advance()
        return job

    def forget(self, number: int) -> Job:
        """Take a training out of the line.

        Raises:
            JobError: it does not wait.
        """
        with self._lock:
            job = next((each for each in self._jobs if each.number == number and each.state == "waiting"), None)
            if job is None:
                raise JobError("it waits no more; stop it instead")
            self._jobs.remove(job)
        return job

    def advance(self) -> None:
        """See which processes have ended, and begin the next that waits when none goes on."""
        with self._lock:
            for job in self._jobs:
                self._settle(job)
            if any(job.state == "running" for job in self._jobs):
                return
            first = next((each for each in self._jobs if each.state == "waiting"), None)
            if first is not None:
                try:
                    self._start(first)
                except JobError as error:
                    first.failed, first.said = True, str(error)

    def rows(self) -> list[dict[str, Any]]:
        """Return what the page says of each, the latest first."""
        with self._lock:
            return [
                {
                    "number": job.number,
                    "run": job.run,
                    "state": job.state,
                    "command": job.command,
                    "said": job.said,
                }
                for job in reversed(self._jobs)
            ]

    def waiting(self) -> list[str]:
        """Return the commands that wait."""
        with self._lock:
            return [job.command for job in self._jobs if job.state == "waiting"]

    def _start(self, job: Job) -> None:
        try:
            with _opened(_log_of(job.folder)) as log:
                job.printed_before = log.tell()
                job.process = subprocess.Popen(
                    [*companion.rlcore_command(), *job.arguments],
                    cwd=self._place,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # it is to go on when the console or its terminal ends
                )
        except OSError as error:
            raise JobError(f"{job.run} cannot be begun with its output in {_log_of(job.folder)}: {error}") from error

    def _settle(self, job: Job) -> None:
        """Move the output of a new run into its folder, and read why a process failed."""
        if job.process is None:
            return
        beside = job.folder.with_name(f"{job.folder.name}.log")
        if job.folder.is_dir() and beside.is_file() and not (job.folder / OUTPUT).exists():
            with contextlib.suppress(OSError):
                beside.rename(job.folder / OUTPUT)
        if job.state == "failed" and not job.said:
            words = last_words(_log_of(job.folder), job.printed_before, job.folder, job.process.pid)
            job.said = words or how_it_ended(job.process.returncode)


def _log_of(folder: Path) -> Path:
    """Return the file for what a run prints; a run that is to be new must not find a folder."""
    return folder / OUTPUT if folder.is_dir() else folder.with_name(f"{folder.name}.log")


def _opened(file: Path) -> BinaryIO:
    """Open a file to append to; a link there might lead to any file of this user.

    Raises:
        OSError: it cannot be opened, or has other names.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    stream = os.fdopen(os.open(file, flags, 0o666), "ab")
    if os.fstat(stream.fileno()).st_nlink != 1:
        stream.close()
        raise OSError(f"{file} is a hard link")
    return stream
