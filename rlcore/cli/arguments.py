"""Arguments that several commands have, and the numbers that they take."""

from __future__ import annotations

import argparse
from typing import Final

# what may be asked for, as the system cannot wait for ever: 115 days
_MOST_SECONDS: Final = 10_000_000


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
