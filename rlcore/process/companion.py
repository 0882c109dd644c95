"""A small process beside this one, which acts where this one cannot: when it was killed, or a thread holds the GIL.

It ends the processes that outlived this one, writes the truth into the status of the run, and kills this process
when none of its threads moves any more, or when it does not end. Its program is in `companion_program.py`.
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

# without site packages, whose start takes long; from where this process imports, the companion may import too
_PROGRAM: Final = """
import json, sys
settings = json.loads(sys.argv[1])
sys.path[:] = settings.pop("path")
from rlcore.process.companion_program import main
main(settings)
"""
# at which this process writes its stacks; nobody sends it to ask for something
_STACKS_SIGNAL: Final = signal.Signals["SIGRTMIN"] + 7 if "SIGRTMIN" in signal.Signals.__members__ else None


class Companion:
    """The process beside this one, which reads on a board what it is told.

    Args:
        folder: of the run, which need not exist yet; None when there is no run.
        hang_after: seconds without a call of `moves`, from the first one on, after which this process is killed; 0 for
            never.
    """

    def __init__(self, folder: Path | None = None, hang_after: int = 0) -> None:
        self._pid = os.getpid()
        self._words = Words(-1)
        self._stacks: IO[bytes] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._stacks = _registered_stacks() if hang_after else None
            self._process = self._start(folder, hang_after)
        except OSError as error:
            log.warning("no process can be started beside this one, which would see it hang: %s", error)

    def moves(self, paused: bool = False) -> None:
        """Say that the threads of this process move; `paused` lets the next silence last as long as it does."""
        if self._pid == os.getpid():  # no copy that was forked from it
            self._words.paused = paused
            self._words.moves += 1

    def rests(self) -> None:
        """Say that nothing is said for a while."""
        if self._pid == os.getpid():
            self._words.moves = 0

    def keep(self, pid: int, number: int) -> None:
        """Let a process be sent a signal when this one is gone."""
        if not self._words.keep(pid, number):
            log.warning("process %d will outlive this one if this one is killed: there are too many", pid)

    def forget(self, pid: int) -> None:
        """Forget a process that has ended."""
        self._words.forget(pid)

    def end_within(self, seconds: float) -> None:
        """Let this process be killed if it has not ended by then."""
        if self._pid == os.getpid():
            self._words.deadline = time.monotonic() + seconds

    def close(self) -> None:
        """End the companion: this process says itself how its run ended."""
        global _running
        _running = None if _running is self else _running
        if self._pid != os.getpid():
            return
        if self._process is not None:
            self._process.kill()  # it has nothing to finish as long as this process is there
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
                start_new_session=True,  # what is sent to the group of this process does not reach it
            )
        finally:
            os.close(words)


def running() -> Companion | None:
    """Return the companion of this process, if there is one."""
    return _running if _running is not None and _running._pid == os.getpid() else None


def start(folder: Path | None = None, hang_after: int = 0) -> Companion:
    """Start the companion of this process, in the place of one that there was."""
    global _running
    earlier = running()
    if earlier is not None:
        earlier.close()
    _running = Companion(folder, hang_after)
    return _running


def end_with_this(pid: int, number: int = signal.SIGKILL) -> None:
    """Let a process end with this one, however this one ends; a companion is started if there is none.

    Args:
        pid: of the process.
        number: of the signal that ends it; default: one that it cannot refuse.
    """
    (running() or start()).keep(pid, number)


def forget(pid: int) -> None:
    """Forget a process that has ended."""
    companion = running()
    if companion is not None:
        companion.forget(pid)


def rlcore_command() -> list[str]:
    """Return the command of another rlcore, which imports from the same places as this process.

    `python -m rlcore` imports from the working directory too, and the script `rlcore` does not.
    """
    as_module = Path(sys.argv[0]).name == "__main__.py"
    return [sys.executable, *([] if as_module else ["-P"]), "-m", "rlcore"]


def start_run(
    arguments: Sequence[str], output: IO[bytes], environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start another rlcore; when this process is gone, however it ended, that one is told to save its state and end.

    It has a session of its own, so that Ctrl-C reaches it through this process alone.

    Args:
        arguments: after `rlcore`.
        output: where both of its streams go.
        environment: of the process; default: that of this one.
    """
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
    """Return a file without a name into which this process writes its stacks at a signal."""
    if _STACKS_SIGNAL is None:
        return None
    stream = os.fdopen(nameless_file("stacks"), "wb")
    faulthandler.register(_STACKS_SIGNAL, stream, all_threads=True)
    return stream


_running: Companion | None = None
