"""Ending the process of a command: threads and children of plugins get some time to end, then the process ends.

The exit code stays that of the command.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from rlcore.process.companion import Companion

# the interpreter itself takes up to this long to end: nothing is printed before, and no bound is shorter
_SAY_AFTER: Final = 1.0
# short naps, as the interpreter ends this daemon thread between two of them
_LOOK_SECONDS: Final = 0.1
# how much longer than this process itself the companion waits: on a busy machine the interpreter takes seconds to end
_MARGIN_SECONDS: Final = 60.0


def leave(code: int, seconds: float) -> NoReturn:
    """End this process with an exit code.

    Args:
        code: the exit code.
        seconds: how long threads, children and `atexit` handlers of plugins may take; a second at least.
    """
    seconds = max(seconds, _SAY_AFTER)
    beside = _companion()
    if beside is not None:
        beside.end_within(seconds + _MARGIN_SECONDS)
    if threading.current_thread() is threading.main_thread():
        # the run is over, so a signal ends the waiting and keeps the exit code
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, lambda *_: _end(code))
    threading.Thread(target=_bound, args=(code, seconds), name="end of rlcore", daemon=True).start()
    sys.exit(code)


def dismiss() -> None:
    """End the companion of this process, if it has one; for a process that goes on after a command."""
    beside = _companion()
    if beside is not None:
        beside.close()


def _companion() -> Companion | None:
    """Return the companion of this process, or None."""
    # looked up and not imported: most commands start none
    module = sys.modules.get("rlcore.process.companion")
    return None if module is None else module.running()


def _bound(code: int, seconds: float) -> None:
    """Print what the process waits for, and end it when that takes too long."""
    began = time.monotonic()
    time.sleep(_SAY_AFTER)
    _say(f"the command is over and waits up to {seconds:g} s for {left()}")
    while time.monotonic() < began + seconds:
        time.sleep(_LOOK_SECONDS)
    _say(f"the process ends without {left()}")
    for child in _children():
        child.kill()
    _end(code)


def left() -> str:
    """Return the names of threads and child processes that keep this process from ending."""
    main = threading.main_thread()
    waited = [thread for thread in threading.enumerate() if not thread.daemon and thread is not main]
    threads = [f"thread {thread.name!r}{_place(thread)}" for thread in waited]
    children = [f"child process {child.pid} ({child.name})" for child in _children()]
    return ", ".join([*threads, *children]) or f"a handler of atexit{_place(main)}"


def _children() -> Iterable[Any]:
    """Return the child processes that the end of Python waits for."""
    multiprocessing = sys.modules.get("multiprocessing")
    return [] if multiprocessing is None else multiprocessing.active_children()


def _place(thread: threading.Thread) -> str:
    # private, and the one way to the stack of another thread
    frame = sys._current_frames().get(thread.ident or 0)
    if frame is None:
        return ""
    calls = [call for call in traceback.extract_stack(frame) if "threading.py" not in call.filename]
    return f" in {calls[-1].name} ({calls[-1].filename}:{calls[-1].lineno})" if calls else ""


def _say(message: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"{message}\n".encode(errors="replace"))


def _end(code: int) -> NoReturn:
    # `os._exit` waits for no thread, and flushes nothing
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)
