"""The program of the companion: it watches a process from outside, and says and ends what that process cannot any more.

It is run as a file by an interpreter without site packages and imports only a little of the standard library, so that
it is there in some hundredths of a second. Nobody imports it. What it is told, line by line on its standard input, is
in `companion.py`.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from typing import Any

_LOOK_SECONDS = 0.5
# how long the stacks of a process may take to be written, and a killed process to be gone
_STACKS_SECONDS = 1.0
_GONE_SECONDS = 5.0
# how much longer than the process's own watchdog this one waits, which sees more and says more
_MARGIN_SECONDS = 3.0
_LOCK_SECONDS = 2.0


class Watched:
    """The process that started this one, and what it said of itself.

    Attributes:
        pid: of it.
        gone: descriptor that can be read when it is gone, or None where the system has none.
        workers: processes that end with it, each with the time of its start and the signal that ends it.
        heard: when its threads moved last; None while it did not ask to be watched.
        deadline: when it is to be gone.
        stopped: since when it has been stopped by a signal.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.workers: dict[int, tuple[str, int]] = {}
        self.heard: float | None = None
        self.paused = False
        self.deadline: float | None = None
        self.stopped: float | None = None
        self.told_of_stop = False
        self.dismissed = False
        try:
            self.gone: int | None = os.pidfd_open(pid)
        except (AttributeError, OSError):
            self.gone = None

    @property
    def alive(self) -> bool:
        """Whether it is still the parent of this process."""
        return os.getppid() == self.pid

    def take(self, line: str) -> None:
        """Take what it says."""
        what, _, value = line.partition(" ")
        now = time.monotonic()
        if what == "moves":
            self.heard, self.paused = now, value == "paused"
        elif what == "rests":
            self.heard = None
        elif what == "worker":
            pid, number = map(int, value.split())
            self.workers[pid] = started(pid), number
        elif what == "forget":
            self.workers.pop(int(value), None)
        elif what == "end":
            self.deadline = now + float(value)
        elif what == "bye":
            self.dismissed = True

    def wait(self, seconds: float) -> bool:
        """Wait until it is gone; return whether it is."""
        if self.gone is not None:
            return bool(select.select([self.gone], [], [], seconds)[0])
        deadline = time.monotonic() + seconds
        while self.alive and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS / 10)
        return not self.alive


class Companion:
    """What is done about the process.

    Args:
        watched: the process.
        folder: of its run; None for none.
        limit: seconds without a word after which it is taken to hang; 0 for never.
        stacks: descriptor of the file into which the process writes its stacks at the signal `number`, or None.
        number: of that signal.
    """

    def __init__(self, watched: Watched, folder: str | None, limit: int, stacks: int | None, number: int) -> None:
        self._watched = watched
        self._folder = folder
        self._limit = limit
        self._stacks = stacks
        self._number = number
        self._sources = [source for source in (0, watched.gone) if source is not None]

    def run(self) -> None:
        """Watch until the process is gone, or does not need this one any more."""
        watched, rest = self._watched, b""
        sources = self._sources
        looked = time.monotonic()
        while not watched.dismissed:
            ready = select.select(sources, [], [], _LOOK_SECONDS)[0]
            if 0 in ready:
                received = os.read(0, 65536)
                if not received:  # it closed the pipe, and may go on for a while
                    sources.remove(0)
                *lines, rest = (rest + received).split(b"\n")
                for line in lines:
                    watched.take(line.decode())
            elif watched.gone in ready or not watched.alive:
                self._after_its_end("")
                return
            now = time.monotonic()
            if now - looked > 10 * _LOOK_SECONDS:  # this process stood still, so the other may have too
                watched.heard = watched.heard and now
            looked = now
            if self._look(now):
                return

    def _look(self, now: float) -> bool:
        """Look at how the process does; return whether it was ended."""
        watched = self._watched
        silent = 0.0 if watched.heard is None or watched.paused else now - watched.heard
        late = watched.deadline is not None and now > watched.deadline
        if not (late or silent > _LOOK_SECONDS * 4):
            watched.stopped = None
            return False
        if stopped(watched.pid):
            self._note_stop(now)
            return False
        if watched.stopped is not None:
            watched.stopped, watched.heard = None, now
            return False
        if late:
            self._end(f"process {watched.pid} did not end by itself", self._place())
            return True
        if self._limit and silent > self._limit + _MARGIN_SECONDS:
            place = self._place()
            if self._hears():  # the signal that asks for the stacks may wake a call that slept
                return False
            self._end(f"no thread of process {watched.pid} moved for {silent:.0f} s, as if one held the GIL", place)
            return True
        return False

    def _hears(self) -> bool:
        """Return whether the process has said something since."""
        return 0 in self._sources and bool(select.select([0], [], [], 0)[0])

    def _note_stop(self, now: float) -> None:
        """Leave alone a process that somebody stopped, and say so when it lasts."""
        watched = self._watched
        watched.stopped = now if watched.stopped is None else watched.stopped
        if self._limit and now - watched.stopped > self._limit and not watched.told_of_stop:
            watched.told_of_stop = True
            reason = f"process {watched.pid} was stopped by a signal; it goes on after: kill -CONT {watched.pid}"
            say(f"{reason}")
            self._write_status({"reason": reason})

    def _place(self) -> str:
        """Let the process write its stacks, which needs no lock of Python's, and return where its main thread is."""
        if self._stacks is None or not catches(self._watched.pid, self._number):
            return ""
        try:
            os.kill(self._watched.pid, self._number)
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
            with open(os.path.join(self._folder or "", "stacks.txt"), "w") as stream:
                stream.write(text)
            where = "; the stacks are in stacks.txt"
        except OSError:
            say(text)
            where = "; the stacks are above"
        return f"; the main thread was in {place_of(text)}{where}"

    def _end(self, reason: str, place: str) -> None:
        """Kill the process."""
        try:
            os.kill(self._watched.pid, signal.SIGKILL)
        except ProcessLookupError:  # it ended by itself just now
            self._after_its_end("")
            return
        self._watched.wait(_GONE_SECONDS)
        say(f"{reason}{place}; it was killed")
        self._after_its_end(f"{reason}{place}; it was killed")

    def _after_its_end(self, reason: str) -> None:
        """End what the process left, and write the truth about its run."""
        how = reason or ended(self._watched.pid)
        for pid, (start, number) in self._watched.workers.items():
            if start and started(pid) == start:
                try:
                    os.kill(pid, number)
                except OSError:
                    continue
        folder = self._folder
        if folder is None:
            return
        state = "failed-resumable" if has_checkpoint(folder) else "failed"
        how += "; the latest checkpoint stands, continue with --resume" if state == "failed-resumable" else ""
        if self._write_status({"state": state, "reason": how}) and not reason:
            say(how)

    def _write_status(self, change: dict[str, Any]) -> bool:
        """Change the status of the run, where it is still the status that the process left; return whether it was."""
        if self._folder is None:
            return False
        file = os.path.join(self._folder, "status.json")
        try:
            with Held(self._folder, "state" in change):
                with open(file) as stream:
                    status = json.load(stream)
                if status.get("pid") != self._watched.pid or status.get("state") != "running":
                    return False
                status.update(change)
                # as `rlcore.files.replacement`, which this program cannot import
                temporary = os.path.join(self._folder, f".status.json-{os.getpid()}")
                with open(temporary, "w") as stream:
                    stream.write(json.dumps(status, indent=1) + "\n")
                    stream.flush()
                    os.fsync(stream.fileno())
                os.replace(temporary, file)
        except (OSError, ValueError, AttributeError):  # there is no run yet, or nothing can be written
            return False
        return True


class Held:
    """The lock of a run folder, so that a process that goes on with the run waits for a moment.

    Args:
        folder: of the run.
        take: whether it is taken: the process that had it is gone, so that it can be had.

    Raises:
        OSError: another process has it.
    """

    def __init__(self, folder: str, take: bool) -> None:
        self._file = os.path.join(folder, ".lock")
        self._take = take
        self._descriptor: int | None = None

    def __enter__(self) -> None:
        if not self._take:
            return
        try:
            import fcntl
        except ImportError:  # no such lock on this system
            return
        # for writing too, without which NFS grants no lock that excludes others
        self._descriptor = os.open(self._file, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        deadline = time.monotonic() + _LOCK_SECONDS
        while True:  # the system lets go of it a moment after the process is gone
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > deadline:
                    self.__exit__()
                    raise
                time.sleep(0.02)

    def __exit__(self, *error: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)


def has_checkpoint(folder: str) -> bool:
    """Return whether a checkpoint of a run was committed: `rlcore.checkpoints.manifest` cannot be imported here."""
    try:
        names = os.listdir(os.path.join(folder, "checkpoints"))
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
    """Return when a process started, which tells it from a later one of the same number."""
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


def main() -> None:
    """Begin with what the command line says."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):  # meant for the process
        signal.signal(number, signal.SIG_IGN)
    settings = json.loads(sys.argv[1])
    watched = Watched(settings.pop("pid"))
    Companion(watched, **settings).run()


if __name__ == "__main__":
    main()
