"""Colours of lines, told apart by those who see no red, no green or no blue too (Okabe and Ito 2008)."""

from __future__ import annotations

from typing import Final, Literal

# yellow, which white paper swallows, is left out, and black, which is the text's
COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
# what tells lines apart when there are more of them than colours
STYLES: Final[tuple[Literal["-", "--", ":", "-."], ...]] = ("-", "--", ":", "-.")


def colour(number: int) -> str:
    """Return the colour of a line."""
    return COLOURS[number % len(COLOURS)]


def style(number: int) -> Literal["-", "--", ":", "-."]:
    """Return the dashes of a line, as matplotlib names them."""
    return STYLES[number // len(COLOURS) % len(STYLES)]
