"""What this process can know of itself: since when it runs, and on how many cores it may."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Final

_IMPORTED: Final = time.monotonic()


def age() -> float:
    """Return the seconds since this process began; where the system does not say it, since this was imported."""
    since_import = time.monotonic() - _IMPORTED
    if sys.platform != "linux":
        return since_import
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()  # the name before may have anything
        began = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        since_began = time.clock_gettime(time.CLOCK_BOOTTIME) - began
    except (OSError, ValueError, IndexError):
        return since_import
    return max(since_began, since_import) if began > 0 else since_import


def usable_cores() -> int:
    """Return how many cores this process may use, which may be fewer than the machine has."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1
