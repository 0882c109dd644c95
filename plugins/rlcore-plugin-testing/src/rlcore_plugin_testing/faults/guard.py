"""A guard over this process: from now on nothing is unpickled, imported, started, connected or written elsewhere.

It works by an audit hook, which stays until the process ends; so it belongs in a process of its own.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

_STARTS: Final = ("subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "pty.", "ctypes.")
_TALKS: Final = ("socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo", "urllib.")
# events to the positions of the paths that they change
_CHANGES: Final = {
    **dict.fromkeys(("os.mkdir", "os.remove", "os.rmdir", "os.chmod", "os.chown", "os.truncate", "os.utime"), (0,)),
    **dict.fromkeys(("os.rename", "os.link", "os.symlink"), (0, 1)),
}
_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Breach(BaseException):
    """Something happened that must not; no error of the code under test, so nothing may catch it as one."""


class TooSlowError(BaseException):
    """The time is over."""


def guard(inside: Path, modules: Collection[str] = ()) -> list[str]:
    """Watch this process until it ends.

    Args:
        inside: the only folder that may be written to.
        modules: top-level packages that may still be imported, besides the standard library; what is imported
            already is not imported again.

    Returns:
        What was attempted, also where the code under test caught the error; filled as it happens.
    """
    breaches: list[str] = []
    root = os.path.realpath(inside)
    allowed = {*sys.stdlib_module_names, *modules}

    def refuse(what: str) -> None:
        breaches.append(what)
        raise Breach(what)

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event.startswith("pickle."):
            refuse(f"{event} {arguments}")
        if event == "import" and str(arguments[0]).partition(".")[0] not in allowed:
            refuse(f"import {arguments[0]}")
        if event.startswith((*_STARTS, *_TALKS)):
            refuse(f"{event} {arguments!r:.200}")
        for path in _changed(event, arguments):
            if not _is_inside(path, root):
                refuse(f"{event} {path}")

    sys.addaudithook(watch)
    return breaches


def _changed(event: str, arguments: tuple[Any, ...]) -> Iterator[Any]:
    if event == "open":
        path, mode, flags = arguments
        if (isinstance(mode, str) and set(mode) & set("wax+")) or (isinstance(flags, int) and flags & _WRITES):
            yield path
        return
    for position in _CHANGES.get(event, ()):
        yield arguments[position]


def _is_inside(path: Any, root: str) -> bool:
    if isinstance(path, int):  # an open file, which was looked at when it was opened
        return True
    text = os.fsdecode(path)
    if not os.path.isabs(text) and os.sep not in text:  # relative to an open folder, as shutil.rmtree removes
        return True
    return os.path.realpath(text) == root or os.path.realpath(text).startswith(root + os.sep)


@contextmanager
def bounds(seconds: float, memory: int) -> Iterator[None]:
    """Bound the time of a block and what the process may map beyond what it has mapped.

    Raises:
        TooSlowError: the block took longer.
        MemoryError: it asked for more.
    """

    def stop(number: int, frame: object) -> None:
        raise TooSlowError(f"more than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + memory, hard))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGALRM, before)


def outcome(action: Callable[[], Any], expected: type[BaseException]) -> str:
    """Return `"done"`, `"refused: ..."` for an expected error, or the name of an error that is none."""
    try:
        action()
    except expected as error:
        return f"refused: {error}"
    except BaseException as error:
        return f"{type(error).__name__}: {error!s:.300}"
    return "done"
