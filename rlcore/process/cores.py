"""How many cores this process may use."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Return how many cores this process may use, which may be fewer than the machine has."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1
