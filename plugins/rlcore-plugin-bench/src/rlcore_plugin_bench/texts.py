"""Numbers and durations in words."""

from __future__ import annotations

import argparse
import re
from typing import Final

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def duration(seconds: float) -> str:
    """Return seconds in the largest unit that fits: `40 s`, `12 min`, `3.5 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def seconds(text: str) -> float:
    """Return the seconds of an argument such as `90`, `45s`, `30m`, `1.5h`.

    Raises:
        ArgumentTypeError: it is none.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text)
    if not found or not float(found[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is no time such as 45s, 30m or 1.5h")
    return float(found[1]) * _UNITS[found[2] or "s"]
