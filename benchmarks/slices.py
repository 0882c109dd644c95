"""Runs programs in turn, in slices of some seconds: each is stopped, with every process it started, while others run.

A shared machine is a third faster or slower from one minute to the next, so whole runs one after another cannot show a
difference of a few hundredths. Slices side by side drift together. Where a process has its memory, and in which order
its tables are, makes four hundredths more by chance; so both are the same in all.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from typing import Final

import psutil

READY: Final = "ready"
ENDED: Final = "ended"


class Program:
    """A program that prints `ready`, waits for a line, prints further words when it gets there, and at last `ended`.

    Args:
        command: its command line.

    Attributes:
        seconds: how long it ran from the line on, without the time in which it was stopped.
        marks: those seconds at each line that it printed.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.seconds = 0.0
        self.marks: dict[str, float] = {}
        self._words = b""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the program runs
        self._process = subprocess.Popen(
            ["setarch", "--addr-no-randomize", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"},
        )

    @property
    def ended(self) -> bool:
        """Whether it has come to its end."""
        return ENDED in self.marks

    def prepare(self) -> None:
        """Let it get ready, and stop it there."""
        while READY not in self.marks:
            self._read(None)
            self._note()
        self._stop()
        assert self._process.stdin is not None
        self._process.stdin.write(b"go\n")
        self._process.stdin.flush()

    def run(self, seconds: float) -> None:
        """Go on for so many seconds, or to the end."""
        for process in reversed(self._tree()):  # the program itself at last: only its time counts
            _send(process, signal.SIGCONT)
        began = time.perf_counter() - self.seconds
        end = self.seconds + seconds
        while not self.ended and self.seconds < end:
            self._read(end - self.seconds)
            self.seconds = time.perf_counter() - began
            self._note()
        if self.ended:
            self._process.communicate()
            return
        self._process.send_signal(signal.SIGSTOP)
        self.seconds = time.perf_counter() - began
        self._stop()

    def kill(self) -> None:
        """End it, if it has not ended, with every process it started."""
        if self._process.poll() is None:
            for process in self._tree():
                _send(process, signal.SIGKILL)
            self._process.wait()

    def _read(self, seconds: float | None) -> None:
        assert self._process.stdout is not None
        if select.select([self._process.stdout], [], [], seconds)[0]:
            words = os.read(self._process.stdout.fileno(), 4096)
            if not words:
                self._errors.seek(0)
                raise SystemExit(self._errors.read()[-2000:].decode())
            self._words += words

    def _note(self) -> None:
        *lines, self._words = self._words.split(b"\n")
        for line in lines:
            self.marks.setdefault(line.decode(), self.seconds)

    def _tree(self) -> list[psutil.Process]:
        process = psutil.Process(self._process.pid)
        return [process, *process.children(recursive=True)]

    def _stop(self) -> None:
        """Stop all, also what is started meanwhile."""
        while left := [process for process in self._tree() if _runs(process)]:
            for process in left:
                _send(process, signal.SIGSTOP)


def _send(process: psutil.Process, number: signal.Signals) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(number)


def _runs(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.status() not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE)
    return False


def in_turn(programs: Sequence[Program], seconds: float) -> None:
    """Run programs to their ends, in slices of so many seconds, in the given order."""
    try:
        for program in programs:
            program.prepare()
        while left := [program for program in programs if not program.ended]:
            for program in left:
                program.run(seconds)
    finally:
        for program in programs:
            program.kill()
