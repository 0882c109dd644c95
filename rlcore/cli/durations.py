"""Times on the command line, such as `3h55m`."""

from __future__ import annotations

import argparse
import re
from typing import Final

_UNITS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_FORM: Final = re.compile("".join(rf"(?:([0-9]{{1,7}}){unit})?" for unit in _UNITS))


def duration(text: str) -> int:
    """Return the seconds of days, hours, minutes and seconds, in that order, each of which may be left out.

    Raises:
        argparse.ArgumentTypeError: it does not read so, or is no time at all.
    """
    match = _FORM.fullmatch(text.strip().lower())
    counts = match.groups(default="0") if match else ()
    seconds = sum(int(count) * unit for count, unit in zip(counts, _UNITS.values(), strict=False))
    if not seconds:
        raise argparse.ArgumentTypeError(f"{text!r} is no time: write 90s, 30m, 3h55m or 1d")
    return seconds


def spoken(seconds: int) -> str:
    """Return a time as it is written on the command line."""
    parts = []
    for unit, length in _UNITS.items():
        count, seconds = divmod(seconds, length)
        parts += [f"{count}{unit}"] if count else []
    return "".join(parts)
