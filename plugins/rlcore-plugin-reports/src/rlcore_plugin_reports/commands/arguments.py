"""The numbers that the commands take."""

from __future__ import annotations

import argparse
import math


def finite(text: str) -> float:
    """Return a number."""
    value = float(text)
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError("must be a finite number")
    return value


def port(text: str) -> int:
    """Return a port; 0 for any that is free."""
    value = int(text)
    if not 0 <= value <= 65535:
        raise argparse.ArgumentTypeError("must be from 0 to 65535")
    return value
