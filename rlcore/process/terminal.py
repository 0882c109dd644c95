"""Text of files for a terminal, which would obey what it holds of control codes."""

from __future__ import annotations


def printable(text: object) -> str:
    """Return `str(text)` with everything that a terminal would obey written out, as `repr` does."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in str(text))
