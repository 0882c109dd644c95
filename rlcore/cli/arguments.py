"""Arguments that several commands have, and the numbers that they take."""

from __future__ import annotations

import argparse
import re
from typing import Final

# what may be asked for, as the system cannot wait for ever: 115 days
_MOST_SECONDS: Final = 10_000_000
_UNITS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_FORM: Final = re.compile("".join(rf"(?:([0-9]{{1,7}}){unit})?" for unit in _UNITS))


def override_arguments(command: argparse.ArgumentParser) -> None:
    """Add what changes a config."""
    command.add_argument(
        "--set", action="append", default=[], metavar="K=V", help="override a key, such as loss.clip_epsilon=0.3"
    )
    command.add_argument("--enable", action="append", default=[], metavar="X", help="import plugin X too")
    command.add_argument("--disable", action="append", default=[], metavar="X", help="refuse to import plugin X")
    trust_argument(command)


def trust_argument(command: argparse.ArgumentParser) -> None:
    """Add what lets code run that was not written here."""
    command.add_argument("--trust", action="store_true", help="run code that was not written here, and remember to")


def seconds(text: str) -> float:
    """Return a number of seconds."""
    value = float(text)
    if not 0 <= value <= _MOST_SECONDS:
        raise argparse.ArgumentTypeError(f"must be from 0 to {_MOST_SECONDS:,} seconds")
    return value


def positive(text: str) -> int:
    """Return a whole number above zero."""
    value = int(text.replace("_", ""))
    if value <= 0:
        raise argparse.ArgumentTypeError("must be positive")
    return value


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
