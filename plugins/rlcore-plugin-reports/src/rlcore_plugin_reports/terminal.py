"""Text for a terminal, which obeys control characters."""

from __future__ import annotations


def printable(text: object) -> str:
    """Return `str(text)` with control characters written as by `repr`, as a terminal would obey them."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in str(text))
