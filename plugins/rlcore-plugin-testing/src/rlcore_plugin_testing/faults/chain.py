"""A run that is struck again and again and resumed each time, until it is done."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rlcore.errors import RlcoreError
from rlcore_plugin_testing.faults.killer import Launcher, Process, Strike
from rlcore_plugin_testing.faults.recorder import iterations

_POLL: Final = 0.002
# the exit code that a strike leads to; 0 is an error raised in a hook
_CODES: Final = {
    int(signal.SIGKILL): -signal.SIGKILL,
    int(signal.SIGTERM): 128 + signal.SIGTERM,
    int(signal.SIGINT): 128 + signal.SIGINT,
    0: 7,
}


@dataclass(frozen=True)
class Attempt:
    """One process of a chain.

    Attributes:
        strike: what it was struck with; None for one that was left alone.
        code: its exit code; minus the signal's number when it was killed.
        trained: the frames of the iterations that it finished.
        output: what it printed.
    """

    strike: Strike | None
    code: int
    trained: tuple[int, ...]
    output: str

    @property
    def struck(self) -> bool:
        """Whether the strike came before the end."""
        return self.strike is not None and self.code == _CODES[self.strike.number]


@dataclass(frozen=True)
class Job:
    """A run whose config has the hooks `testing:recorder` and `testing:killer`.

    Attributes:
        config: a config file.
        folder: of the run.
        recording: file of the recorder.
        plan: file of the killer.
        options: further command-line options, such as `--until`.
    """

    config: Path
    folder: Path
    recording: Path
    plan: Path
    options: tuple[str, ...] = ()

    def arguments(self) -> list[str]:
        """Return the command line that begins the run, or goes on with it."""
        resume = ["--resume"] if self.folder.exists() else []
        return ["train", str(self.config), *self.options, *resume]


def run_once(
    launcher: Launcher,
    job: Job,
    strike: Strike | None,
    seconds: float,
    hash_seed: int | None = None,
    options: Sequence[str] = (),
) -> Attempt:
    """Begin the run or go on with it, and strike.

    Args:
        launcher: starts the process.
        job: the run.
        strike: when and how; None to leave the process alone.
        seconds: that the process may take.
        hash_seed: start a fresh interpreter with this `PYTHONHASHSEED`.
        options: of the command line, for this process alone.

    Raises:
        RlcoreError: it did not end in time; it is killed then.
    """
    before = len(iterations(job.recording))
    in_process = strike is not None and (strike.point is not None or strike.event is not None)
    if strike is not None and in_process:
        job.plan.write_text(json.dumps(asdict(strike)))
    process = launcher.start([*job.arguments(), *options], hash_seed)
    deadline = time.monotonic() + seconds
    if strike is not None and not in_process:
        _strike_from_outside(process, job, strike, deadline)
    code = process.wait(max(0.0, deadline - time.monotonic()))
    if code is None:
        process.send(signal.SIGKILL)
        process.wait(60)
        raise RlcoreError(f"{job.folder.name} did not end within {seconds:g} s; it printed:\n{process.text()}")
    job.plan.unlink(missing_ok=True)
    return Attempt(strike, code, tuple(iterations(job.recording)[before:]), process.text())


def run_chain(
    launcher: Launcher,
    job: Job,
    strikes: Iterable[Strike],
    seconds: float,
    fresh_every: int = 0,
    after_each: Callable[[Attempt], None] = lambda attempt: None,
) -> list[Attempt]:
    """Strike a run with each strike in turn, resume it after each, and let it come to its end.

    Args:
        launcher: starts the processes.
        job: the run.
        strikes: one per process.
        seconds: that one process may take.
        fresh_every: every so many processes one is a fresh interpreter with a hash seed of its own; 0 for none.
        after_each: called with each attempt.

    Raises:
        RlcoreError: a process did not end in time, or ended in another way than done or struck.
    """
    attempts: list[Attempt] = []
    for number, strike in enumerate([*strikes, None], start=1):
        hash_seed = number if fresh_every and number % fresh_every == 0 else None
        attempt = run_once(launcher, job, strike, seconds, hash_seed)
        attempts.append(attempt)
        after_each(attempt)
        if attempt.code != 0 and not attempt.struck:
            raise RlcoreError(
                f"{job.folder.name}: process {number} ({strike or 'left alone'}) ended with exit code {attempt.code}; "
                f"it printed:\n{attempt.output}"
            )
        if attempt.code == 0:
            break
    return attempts


def _strike_from_outside(process: Process, job: Job, strike: Strike, deadline: float) -> None:
    """Wait for the moment, and send the signal."""
    delay = strike.at
    if delay is None:
        size, before = _size(job.recording), len(iterations(job.recording))
        while process.wait(_POLL) is None and time.monotonic() < deadline:
            if (now := _size(job.recording)) != size:
                size = now
                if len(iterations(job.recording)) > before:
                    break
        delay = strike.after
    if process.wait(delay or 0.0) is None:
        process.send(strike.number)


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
