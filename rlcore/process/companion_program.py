"""The program of the companion: it watches a process from outside, and says and ends what that process cannot any more.

It is run by an interpreter without site packages, and imports only what is there in some hundredths of a second.
"""

from __future__ import annotations

import json
import mmap
import os
import select
import signal
import time
from pathlib import Path
from typing import Any, Final

from rlcore.errors import RlcoreError
from rlcore.process.board import Board, Stillness

# words of the first line of the board, and of those of the processes that end with the one that writes there
_MOVES, _PAUSED, _DEADLINE = range(3)
_SIGNAL, _PID = range(2)
# lines of the board
_LINES: Final = 1024
_LOOK_SECONDS: Final = 0.5
# how long the stacks of a process may take to be written, and a killed process to be gone
_STACKS_SECONDS: Final = 1.0
_GONE_SECONDS: Final = 5.0
# how much longer than the process's own watchdog this one waits, which sees more and says more
_MARGIN_SECONDS: Final = 3.0


class Words:
    """What a process tells its companion: words of a board, in which nothing waits and nothing fails.

    Args:
        fd: of the memory; -1 for memory that nobody else sees.
    """

    SIZE: Final = 8 * Board.LINE * _LINES

    def __init__(self, fd: int) -> None:
        board = Board(mmap.mmap(fd, self.SIZE))
        self._head, *self._lines = (board.line(number) for number in range(_LINES))

    @property
    def moves(self) -> int:
        """What grows as long as threads of the process move; 0 while nothing is to be expected."""
        return self._head[_MOVES]

    @moves.setter
    def moves(self, count: int) -> None:
        self._head[_MOVES] = count

    @property
    def paused(self) -> bool:
        """Whether the next silence may last as long as it does."""
        return bool(self._head[_PAUSED])

    @paused.setter
    def paused(self, paused: bool) -> None:
        self._head[_PAUSED] = paused

    @property
    def deadline(self) -> float:
        """When the process is to be gone, by the clock that all processes share; infinite while it may stay."""
        return self._head[_DEADLINE] / 1000 or float("inf")

    @deadline.setter
    def deadline(self, when: float) -> None:
        self._head[_DEADLINE] = int(1000 * when)

    @property
    def workers(self) -> dict[int, int]:
        """The processes that end with this one, each with the signal that ends it."""
        return {line[_PID]: line[_SIGNAL] for line in self._lines if line[_PID]}

    def keep(self, pid: int, number: int) -> bool:
        """Let a process be sent a signal when this one is gone; return whether there is room for it."""
        free = next((line for line in self._lines if not line[_PID]), None)
        if free is not None:
            free[_SIGNAL], free[_PID] = number, pid  # in this order, as the companion may look in between
        return free is not None

    def forget(self, pid: int) -> None:
        """Forget a process that has ended."""
        for line in self._lines:
            if line[_PID] == pid:
                line[_PID] = 0


class Companion:
    """What is done about the process that started this one.

    Args:
        pid: of the process.
        words: file descriptor of what it says.
        folder: of its run; None for none.
        limit: seconds without a move after which it is taken to hang; 0 for never.
        stacks: descriptor of the file into which the process writes its stacks at the signal `number`, or None.
        number: of that signal.
    """

    def __init__(self, pid: int, words: int, folder: str | None, limit: int, stacks: int | None, number: int) -> None:
        self._pid = pid
        self._words = Words(words)
        self._folder = None if folder is None else Path(folder)
        self._limit = limit
        self._stacks = stacks
        self._number = number
        self._stillness = Stillness(2 * _LOOK_SECONDS)
        self._starts: dict[int, str] = {}  # of workers
        self._stopped: float | None = None  # since when the process has been stopped by a signal
        self._told_of_stop = False
        try:
            self._ends: int | None = os.pidfd_open(pid)
        except (AttributeError, OSError):  # not on every system
            self._ends = None

    def run(self) -> None:
        """Watch until the process is gone; it ends this one where its run ends well."""
        while not self._wait_for_end(_LOOK_SECONDS):
            self._starts = {pid: self._starts.get(pid) or started(pid) for pid in self._words.workers}
            if self._look():
                return
        self._after_its_end("")

    def _wait_for_end(self, seconds: float) -> bool:
        """Wait until the process is gone; return whether it is."""
        if self._ends is not None and os.getppid() == self._pid:
            return bool(select.select([self._ends], [], [], seconds)[0])
        deadline = time.monotonic() + seconds
        while os.getppid() == self._pid and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS / 10)
        return os.getppid() != self._pid

    def _look(self) -> bool:
        """Look at how the process does; return whether it was ended."""
        now, moves = time.monotonic(), self._words.moves
        silent = self._stillness.look(moves)
        if not moves or self._words.paused:
            silent = self._stillness.seconds = 0.0
        late = now > self._words.deadline
        if not (late or silent > _LOOK_SECONDS * 4):
            self._stopped = None
            return False
        if stopped(self._pid):
            self._note_stop(now)
            return False
        if self._stopped is not None:  # it goes on, and has had no time to move
            self._stopped, self._stillness.seconds = None, 0.0
            return False
        if late:
            self._end(f"process {self._pid} did not end by itself", self._place())
            return True
        if self._limit and silent > self._limit + _MARGIN_SECONDS:
            place = self._place()
            if self._words.moves != moves:  # the signal that asks for the stacks may wake a call that slept
                return False
            self._end(f"no thread of process {self._pid} moved for {silent:.0f} s, as if one held the GIL", place)
            return True
        return False

    def _note_stop(self, now: float) -> None:
        """Leave alone a process that somebody stopped, and say so when it lasts."""
        self._stopped = now if self._stopped is None else self._stopped
        if self._limit and now - self._stopped > self._limit and not self._told_of_stop:
            self._told_of_stop = True
            reason = f"process {self._pid} was stopped by a signal; it goes on after: kill -CONT {self._pid}"
            say(reason)
            self._write_status({"reason": reason})

    def _place(self) -> str:
        """Let the process write its stacks, which needs no lock of Python's, and return where its main thread is."""
        if self._stacks is None or not catches(self._pid, self._number):
            return ""
        try:
            os.kill(self._pid, self._number)
            deadline = time.monotonic() + _STACKS_SECONDS
            while not os.fstat(self._stacks).st_size and time.monotonic() < deadline:
                time.sleep(0.02)
            time.sleep(0.05)  # until the last line is there
            text = os.pread(self._stacks, 1 << 20, 0).decode(errors="replace")
        except OSError:
            return ""
        if not text:
            return ""
        try:
            (self._folder or Path()).joinpath("stacks.txt").write_text(text)
            where = "; the stacks are in stacks.txt"
        except OSError:
            say(text)
            where = "; the stacks are above"
        return f"; the main thread was in {place_of(text)}{where}"

    def _end(self, reason: str, place: str) -> None:
        """Kill the process."""
        try:
            os.kill(self._pid, signal.SIGKILL)
        except ProcessLookupError:  # it ended by itself just now
            self._after_its_end("")
            return
        self._wait_for_end(_GONE_SECONDS)
        say(f"{reason}{place}; it was killed")
        self._after_its_end(f"{reason}{place}; it was killed")

    def _after_its_end(self, reason: str) -> None:
        """End what the process left, and write the truth about its run."""
        how = reason or ended(self._pid)
        for pid, number in self._words.workers.items():
            start = started(pid)
            if start and self._starts.get(pid, start) == start:  # else the number is that of another process by now
                try:
                    os.kill(pid, number)
                except OSError:
                    continue
        if self._folder is None:
            return
        state = "failed-resumable" if has_checkpoint(self._folder) else "failed"
        how += "; the latest checkpoint stands, continue with --resume" if state == "failed-resumable" else ""
        if self._write_status({"state": state, "reason": how}) and not reason:
            say(how)

    def _write_status(self, change: dict[str, Any]) -> bool:
        """Change the status of the run, where it is still the status that the process left; return whether it was."""
        from rlcore.files.lock import Lock
        from rlcore.files.replacement import replace

        if self._folder is None:
            return False
        file = self._folder / "status.json"
        try:
            if "state" in change:  # the process is gone; one that goes on with the run waits until this one is, too
                self._lock = Lock(self._folder)
            status = json.loads(file.read_text())
            if status.get("pid") != self._pid or status.get("state") != "running":
                return False
            replace(file, json.dumps(status | change, indent=1) + "\n", durable=True)
        except (OSError, ValueError, AttributeError, RlcoreError):  # there is no run yet, or nothing can be written
            return False
        return True


def has_checkpoint(folder: Path) -> bool:
    """Return whether a checkpoint of a run was committed, by its name; the manifest takes long to import."""
    try:
        names = os.listdir(folder / "checkpoints")
    except OSError:
        return False
    return any(name[0] in "0123456789" and "-" in name for name in names)


def stat_of(pid: int) -> list[str]:
    """Return the fields of `/proc/PID/stat` from the state on; empty where there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            return stream.read().decode(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def started(pid: int) -> str:
    """Return when a process started, which tells it from a later one of the same number; empty when it has ended."""
    fields = stat_of(pid)
    return fields[19] if fields and fields[0] not in "ZX" else ""


def stopped(pid: int) -> bool:
    """Return whether a process was stopped by a signal."""
    return stat_of(pid)[:1] in (["T"], ["t"])


def catches(pid: int, number: int) -> bool:
    """Return whether a process handles a signal, which would end it else; its interpreter may be gone already."""
    try:
        with open(f"/proc/{pid}/status") as stream:
            lines = [line for line in stream if line.startswith("SigCgt:")]
    except OSError:
        return False
    return any(int(line.split()[1], 16) >> (number - 1) & 1 for line in lines)


def ended(pid: int) -> str:
    """Return how a process ended, as far as that can be seen before its parent has asked for it."""
    fields = stat_of(pid)
    status = int(fields[-1]) if fields and fields[0] == "Z" else 0
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
        return f"process {pid} was ended by signal {name}"
    if fields[:1] == ["Z"]:
        return f"process {pid} ended with exit code {os.WEXITSTATUS(status)} and without a word"
    return f"process {pid} ended without a word: it was killed, or something in it called os._exit"


def place_of(stacks: str) -> str:
    """Return the innermost place of the thread in which the stacks were written."""
    _, _, mine = stacks.partition("Current thread")
    for line in (mine or stacks).splitlines():
        if line.startswith("  File "):
            return line.strip()
    return "an unknown place"


def say(message: str) -> None:
    """Print to the standard error of the process, if somebody listens."""
    try:
        os.write(2, f"error: {message}\n".encode())
    except OSError:
        return


def main(settings: dict[str, Any]) -> None:
    """Begin with what the command line says."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):  # meant for the process
        signal.signal(number, signal.SIG_IGN)
    Companion(**settings).run()
