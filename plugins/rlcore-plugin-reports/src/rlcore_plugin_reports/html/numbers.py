"""Numbers as the page writes them."""

from __future__ import annotations

import math
from typing import Final

_UNITS: Final = ("B", "kB", "MB", "GB", "TB")


def count(value: int) -> str:
    """Return a whole number with a comma for each thousand."""
    return f"{value:,}"


def figure(value: float | None) -> str:
    """Return a return, a length or a mean in about four digits; nothing of nothing."""
    if value is None:
        return ""
    size = abs(value)
    if not math.isfinite(value) or size >= 1e6 or 0 < size < 0.01:
        return f"{value:.3g}"
    return f"{value:,.0f}" if size >= 1e4 else f"{value:,.1f}" if size >= 1 else f"{value:.3f}"


def duration(seconds: float | None) -> str:
    """Return a time in its two largest units."""
    if seconds is None:
        return ""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, hours, days = (int(seconds // unit) for unit in (60, 3600, 86400))
    if hours < 1:
        return f"{minutes} min {int(seconds % 60)} s"
    return f"{hours} h {minutes % 60} min" if days < 1 else f"{days} d {hours % 24} h"


def size(count_of_bytes: float) -> str:
    """Return a size in the largest unit of which there is one."""
    for unit in _UNITS[:-1]:
        if count_of_bytes < 1000:
            return f"{count_of_bytes:.0f} {unit}" if unit == "B" else f"{count_of_bytes:.1f} {unit}"
        count_of_bytes /= 1000
    return f"{count_of_bytes:.1f} {_UNITS[-1]}"


FILTERS: Final = {"count": count, "figure": figure, "duration": duration, "size": size}
