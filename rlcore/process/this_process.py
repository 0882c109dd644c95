"""The age of this process and the cores that it may use."""

from __future__ import annotations

import os
import time
from typing import Final

from rlcore.process.life import stat_of

_IMPORTED: Final = time.monotonic()


def age() -> float:
    """Return the seconds since the start of this process, or of this import where the system has no `/proc`."""
    since_import = time.monotonic() - _IMPORTED
    try:
        began = int(stat_of("self")[19]) / os.sysconf("SC_CLK_TCK")
        since_began = time.clock_gettime(time.CLOCK_BOOTTIME) - began
    except (OSError, ValueError, IndexError):
        return since_import
    return max(since_began, since_import) if began > 0 else since_import


def usable_cores() -> int:
    """Return how many cores this process may use; a job may get fewer than the machine has."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1
