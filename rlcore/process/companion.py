"""The companion: a small process beside this one that acts when this one was killed or hangs.

It ends the workers that outlive this process, corrects the status of the run, and kills this process when none of its
threads moves any more or when it does not end. Its program is in `companion_program.py`.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from rlcore.process.board import nameless_file
from rlcore.process.companion_program import Words

log = logging.getLogger(__name__)

# started without site packages, whose import takes long; the path of this process is set afterwards
_PROGRAM: Final = """
import json, sys
settings = json.loads(sys.argv[1])
sys.path[:] = settings.pop("path")
from rlcore.process.companion_program import main
main(settings)
"""
# makes this process write its stacks; a signal of real time that no scheduler or terminal sends
_STACKS_SIGNAL: Final = signal.Signals["SIGRTMIN"] + 7 if "SIGRTMIN" in signal.Signals.__members__ else None


class Companion:
    """Starts the companion, and tells it over shared memory what it watches for.

    Args:
        folder: of the run, which need not exist yet; None when there is no run.
        hang_after: seconds without a call of `moves` after which this process is killed, counted from the first call;
            0 for never.
    """

    def __init__(self, folder: Path | None = None, hang_after: int = 0) -> None:
        self._pid = os.getpid()
        self._words = Words(-1)
        self._stacks: IO[bytes] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._stacks = _registered_stacks() if hang_after else None
            self._process = self._start(folder, hang_after)
        except OSError as error:  # as where the number of processes is limited; a run does without
            log.warning("no process can be started beside this one, which would see it hang: %s", error)

    def moves(self, paused: bool = False) -> None:
        """Tell that the threads of this process move; with `paused` the next silence is not counted."""
        if self._pid == os.getpid():  # a forked process shares the memory, and must not speak for this one
            self._words.paused = paused
            self._words.moves += 1

    def rests(self) -> None:
        """Tell that no call of `moves` follows for a while."""
        if self._pid == os.getpid():
            self._words.moves = 0

    def keep(self, pid: int, number: int) -> None:
        """Send a signal to a process when this one has ended."""
        if not self._words.keep(pid, number):
            log.warning("process %d will outlive this one if this one is killed: there are too many", pid)

    def forget(self, pid: int) -> None:
        """Take back `keep` for a process that has ended."""
        self._words.forget(pid)

    def end_within(self, seconds: float) -> None:
        """Kill this process if it has not ended after so many seconds."""
        if self._pid == os.getpid():
            self._words.deadline = time.monotonic() + seconds

    def close(self) -> None:
        """End the companion; from here on this process writes its status itself."""
        global _running
        _running = None if _running is self else _running
        if self._pid != os.getpid():
            return
        if self._process is not None:
            self._process.kill()  # while this process lives, the companion has nothing to finish
            self._process.wait()
            self._process = None
        if self._stacks is not None:
            assert _STACKS_SIGNAL is not None
            faulthandler.unregister(_STACKS_SIGNAL)
            self._stacks.close()
            self._stacks = None

    def _start(self, folder: Path | None, hang_after: int) -> subprocess.Popen[bytes]:
        stacks = None if self._stacks is None else self._stacks.fileno()
        words = nameless_file("rlcore-companion")
        try:
            os.truncate(words, Words.SIZE)
            self._words = Words(words)
            settings = {
                "path": [*map(os.path.abspath, sys.path), str(Path(__file__).parents[2])],
                "pid": self._pid,
                "words": words,
                "folder": None if folder is None else os.path.abspath(folder),
                "limit": hang_after,
                "stacks": stacks,
                "number": _STACKS_SIGNAL or 0,
            }
            return subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _PROGRAM, json.dumps(settings)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[fd for fd in (words, stacks) if fd is not None],
                start_new_session=True,  # so that Ctrl-C in a terminal does not reach it
            )
        finally:
            os.close(words)


def running() -> Companion | None:
    """Return the companion of this process, or None; a forked process has none."""
    return _running if _running is not None and _running._pid == os.getpid() else None


def start(folder: Path | None = None, hang_after: int = 0) -> Companion:
    """Start the companion of this process, and close an earlier one."""
    global _running
    earlier = running()
    if earlier is not None:
        earlier.close()
    _running = Companion(folder, hang_after)
    return _running


def end_with_this(pid: int, number: int = signal.SIGKILL) -> None:
    """End a process with this one, also where this one is killed; starts a companion if there is none.

    Args:
        pid: of the process.
        number: of the signal that ends it; default: SIGKILL.
    """
    (running() or start()).keep(pid, number)


def forget(pid: int) -> None:
    """Take back `end_with_this` for a process that has ended."""
    companion = running()
    if companion is not None:
        companion.forget(pid)


def rlcore_command() -> list[str]:
    """Return the command of another rlcore with the import path of this one."""
    # `python -m rlcore` imports from the working directory too, and the script `rlcore` does not: `-P` leaves it out
    as_module = Path(sys.argv[0]).name == "__main__.py"
    return [sys.executable, *([] if as_module else ["-P"]), "-m", "rlcore"]


def start_run(
    arguments: Sequence[str], output: IO[bytes], environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start another rlcore, which saves its state and ends when this process ends, also when it is killed.

    Args:
        arguments: after `rlcore`.
        output: file for its standard output and standard error.
        environment: of the process; default: that of this one.
    """
    # in a session of its own, so that Ctrl-C reaches it through this process alone
    process = subprocess.Popen(
        [*rlcore_command(), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        env=environment,
        start_new_session=True,
    )
    end_with_this(process.pid, signal.SIGTERM)
    return process


def _registered_stacks() -> IO[bytes] | None:
    """Return a file without a name for the stacks of this process, which a signal makes it write."""
    if _STACKS_SIGNAL is None:
        return None
    stream = os.fdopen(nameless_file("stacks"), "wb")
    faulthandler.register(_STACKS_SIGNAL, stream, all_threads=True)
    return stream


_running: Companion | None = None
