"""A Sphinx extension: the docstrings of the public modules, which have Markdown's marks and Google's sections."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from sphinx.ext.napoleon import Config, GoogleDocstring

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_ENDS_IN_COLON: Final = re.compile(r"\S:$")
_STAR_IN_WORDS: Final = re.compile(r"(?<![`\w])\*(?=\w)")
_FORMAT: Final = Config(napoleon_use_ivar=True, napoleon_use_rtype=False)
# a sentence, in which what stands before a colon is no type
_ONE_SENTENCE: Final = ("property", "attribute", "data")


def with_literal_blocks(lines: list[str]) -> list[str]:
    """Return a docstring whose stars are no emphasis, and whose indented blocks are literal ones.

    Such a block follows a line that ends in a colon and an empty one.
    """
    shown, margin = [], -1  # of the literal block that a line is in
    for line, between, block in zip(lines, [*lines[1:], ""], [*lines[2:], "", ""], strict=True):
        indent = len(line) - len(line.lstrip())
        if line.strip() and indent <= margin:
            margin = -1
        if margin >= 0:
            shown.append(line)
            continue
        if _ENDS_IN_COLON.search(line) and not between.strip() and block.startswith(" " * (indent + 4)):
            margin, line = indent, f"{line}:"
        shown.append(_STAR_IN_WORDS.sub(r"\*", line))
    return shown


def process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Rewrite the lines of a docstring in place, as autodoc asks for it."""
    lines[:] = with_literal_blocks(lines)
    if what not in _ONE_SENTENCE:
        lines[:] = GoogleDocstring(lines, _FORMAT, app, what, name, obj, options).lines()


def signature(app: Sphinx, what: str, name: str, obj: Any, options: Any, *shown: str | None) -> tuple[str, str] | None:
    """Return no arguments for an interface: nobody calls it."""
    return ("", "") if getattr(obj, "_is_protocol", False) else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("autodoc-process-docstring", process)
    app.connect("autodoc-process-signature", signature)
    return {"parallel_read_safe": True}
