"""The program of the companion: it watches a process, and cleans up after its end.

An interpreter without site packages runs it, so it imports the standard library and few modules of rlcore alone.
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
from rlcore.process.life import catches, exit_of, how_it_ended, started, stopped

# words of the first line of the board, and of each further line, which is for one worker
_MOVES, _PAUSED, _DEADLINE = range(3)
_SIGNAL, _PID = range(2)
# lines of the board
_LINES: Final = 1024
_LOOK_SECONDS: Final = 0.5
# how long a process may take to write its stacks, and a killed process to end
_STACKS_SECONDS: Final = 1.0
_GONE_SECONDS: Final = 5.0
# how much longer than the watchdog of the process the companion waits: the watchdog saves, and names the hook
_MARGIN_SECONDS: Final = 3.0


class Words:
    """Shared memory by which a process tells its companion; writing it neither waits nor fails.

    Args:
        fd: of the memory; -1 for memory of this process alone.
    """

    SIZE: Final = 8 * Board.LINE * _LINES

    def __init__(self, fd: int) -> None:
        board = Board(mmap.mmap(fd, self.SIZE))
        self._head, *self._lines = (board.line(number) for number in range(_LINES))

    @property
    def moves(self) -> int:
        """A count that grows while threads of the process move; 0 while none is expected to."""
        return self._head[_MOVES]

    @moves.setter
    def moves(self, count: int) -> None:
        self._head[_MOVES] = count

    @property
    def paused(self) -> bool:
        """Whether the next silence is not counted."""
        return bool(self._head[_PAUSED])

    @paused.setter
    def paused(self, paused: bool) -> None:
        self._head[_PAUSED] = paused

    @property
    def deadline(self) -> float:
        """Time by which the process must have ended, by `time.monotonic`; infinite for none."""
        # words are integers, so the time is in milliseconds
        return self._head[_DEADLINE] / 1000 or float("inf")

    @deadline.setter
    def deadline(self, when: float) -> None:
        self._head[_DEADLINE] = int(1000 * when)

    @property
    def workers(self) -> dict[int, int]:
        """The processes that end with this one, pid to signal."""
        return {line[_PID]: line[_SIGNAL] for line in self._lines if line[_PID]}

    def keep(self, pid: int, number: int) -> bool:
        """Add a process that gets a signal when this one has ended; return whether there was room."""
        free = next((line for line in self._lines if not line[_PID]), None)
        if free is not None:
            # the pid last: the companion may read in between, and takes a line without pid for free
            free[_SIGNAL], free[_PID] = number, pid
        return free is not None

    def forget(self, pid: int) -> None:
        """Remove a process that has ended."""
        for line in self._lines:
            if line[_PID] == pid:
                line[_PID] = 0


class Companion:
    """Watches the process that started this one, kills it when it hangs, and cleans up after its end.

    Args:
        pid: of the process.
        words: file descriptor of its `Words`.
        folder: of its run; None for none.
        limit: seconds without a move until the process is killed; 0 for never.
        stacks: file descriptor for its stacks, or None.
        number: of the signal that makes the process write its stacks.
    """

    def __init__(self, pid: int, words: int, folder: str | None, limit: int, stacks: int | None, number: int) -> None:
        self._pid = pid
        self._words = Words(words)
        self._folder = None if folder is None else Path(folder)
        self._limit = limit
        self._stacks = stacks
        self._number = number
        self._stillness = Stillness(2 * _LOOK_SECONDS)
        self._starts: dict[int, str] = {}  # pid of a worker to the time of its start
        self._stopped: float | None = None  # when a signal stopped the process
        self._told_of_stop = False
        try:
            self._ends: int | None = os.pidfd_open(pid)
        except (AttributeError, OSError):  # not on every system
            self._ends = None

    def run(self) -> None:
        """Watch until the process has ended; one that ends well kills this one."""
        while not self._wait_for_end(_LOOK_SECONDS):
            self._starts = {pid: self._starts.get(pid) or started(pid) for pid in self._words.workers}
            if self._look():
                return
        self._after_its_end("")

    def _wait_for_end(self, seconds: float) -> bool:
        """Wait for the end of the process; return whether it has ended."""
        # after its end this process has another parent, and the number may be that of a new process
        if self._ends is not None and os.getppid() == self._pid:
            return bool(select.select([self._ends], [], [], seconds)[0])
        deadline = time.monotonic() + seconds
        while os.getppid() == self._pid and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS / 10)
        return os.getppid() != self._pid

    def _look(self) -> bool:
        """Check once whether the process moves and is within its time; return whether it was killed."""
        now, moves = time.monotonic(), self._words.moves
        silent = self._stillness.look(moves)
        if not moves or self._words.paused:
            silent = self._stillness.seconds = 0.0
        late = now > self._words.deadline
        if not (late or silent > _LOOK_SECONDS * 4):  # all is well: do not read /proc
            self._stopped = None
            return False
        if stopped(self._pid):
            self._note_stop(now)
            return False
        if self._stopped is not None:  # continued just now: it had no time to move
            self._stopped, self._stillness.seconds = None, 0.0
            return False
        if late:
            self._end(f"process {self._pid} did not end by itself", self._place())
            return True
        if self._limit and silent > self._limit + _MARGIN_SECONDS:
            place = self._place()
            if self._words.moves != moves:  # the signal has interrupted a system call that waited
                return False
            self._end(f"no thread of process {self._pid} moved for {silent:.0f} s, as if one held the GIL", place)
            return True
        return False

    def _note_stop(self, now: float) -> None:
        """Note that a signal has stopped the process, and report it when it lasts."""
        self._stopped = now if self._stopped is None else self._stopped
        if self._limit and now - self._stopped > self._limit and not self._told_of_stop:
            self._told_of_stop = True
            reason = f"process {self._pid} was stopped by a signal; it goes on after: kill -CONT {self._pid}"
            say(reason)
            self._write_status({"reason": reason})

    def _place(self) -> str:
        """Let the process write its stacks, and return a text with the place of its main thread."""
        # `faulthandler` writes them in the handler of the signal, which needs no GIL
        if self._stacks is None or not catches(self._pid, self._number):
            return ""
        try:
            os.kill(self._pid, self._number)
            deadline = time.monotonic() + _STACKS_SECONDS
            while not os.fstat(self._stacks).st_size and time.monotonic() < deadline:
                time.sleep(0.02)
            time.sleep(0.05)  # the file grows line by line
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
        """Kill the process, and report why."""
        try:
            os.kill(self._pid, signal.SIGKILL)
        except ProcessLookupError:  # it has ended by itself meanwhile
            self._after_its_end("")
            return
        self._wait_for_end(_GONE_SECONDS)
        say(f"{reason}{place}; it was killed")
        self._after_its_end(f"{reason}{place}; it was killed")

    def _after_its_end(self, reason: str) -> None:
        """End the workers of the process, and correct the status of its run."""
        how = reason or f"in the middle of its run, process {self._pid} {how_it_ended(exit_of(self._pid))}"
        for pid, number in self._words.workers.items():
            start = started(pid)
            if start and self._starts.get(pid, start) == start:  # else another process has this number
                try:
                    os.kill(pid, number)
                except OSError:  # it has ended meanwhile
                    continue
        if self._folder is None:
            return
        state = "failed-resumable" if has_checkpoint(self._folder) else "failed"
        how += "; the latest checkpoint stands, continue with --resume" if state == "failed-resumable" else ""
        if self._write_status({"state": state, "reason": how}) and not reason:
            say(how)

    def _write_status(self, change: dict[str, Any]) -> bool:
        """Change entries in the status of the run, unless another process has written it; return whether it changed."""
        from rlcore.files.lock import Lock
        from rlcore.files.replacement import replace

        if self._folder is None:
            return False
        file = self._folder / "status.json"
        try:
            if "state" in change:  # the process has ended; a resume waits for this lock until the status is right
                self._lock = Lock(self._folder, self._pid)
            status = json.loads(file.read_text())
            if status.get("pid") != self._pid or status.get("state") != "running":
                return False
            replace(file, json.dumps(status | change, indent=1) + "\n", durable=True)
        except (OSError, ValueError, AttributeError, RlcoreError):  # there is no run yet, or nothing can be written
            return False
        return True


def has_checkpoint(folder: Path) -> bool:
    """Return whether a run has a committed checkpoint."""
    # by its name, as in `checkpoints/manifest.py`, whose import takes too long here
    try:
        names = os.listdir(folder / "checkpoints")
    except OSError:
        return False
    return any(name[0] in "0123456789" and "-" in name for name in names)


def place_of(stacks: str) -> str:
    """Return the innermost frame of the thread that wrote the stacks."""
    _, _, current = stacks.partition("Current thread")
    places = (line.strip() for line in (current or stacks).splitlines() if line.startswith("  File "))
    return next(places, "an unknown place")


def say(message: str) -> None:
    """Print to standard error, which may be closed."""
    try:
        os.write(2, f"error: {message}\n".encode())
    except OSError:
        return


def main(settings: dict[str, Any]) -> None:
    """Run the companion with the settings of its command line."""
    # schedulers send these to all processes of a job; they are meant for the one that trains
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    Companion(**settings).run()
