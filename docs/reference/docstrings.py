"""Docstrings as Markdown: the sections of Google's style, and the lines of the source that call an interface."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Final, NamedTuple

_SECTION: Final = re.compile(r"^(Args|Attributes|Returns|Yields|Raises|Example|Called in `[^`]+`):$", re.MULTILINE)
_CALLED_IN: Final = re.compile(r"Called in `([^`]+)`")
_ENTRY: Final = re.compile(r"(\S[^:\n]*): (.*)", re.DOTALL)
_TITLES: Final = {"Args": "Arguments:", "Attributes": "Attributes:", "Raises": "Errors:"}


class Caller(NamedTuple):
    """Lines of a file of the repository; a line of three dots stands for any lines."""

    file: str
    lines: str


def first_sentence(doc: str) -> str:
    """Return the first paragraph of a docstring, in one line."""
    return " ".join(doc.strip().split("\n\n")[0].split())


def prose(doc: str) -> str:
    """Return a docstring without its sections."""
    return _SECTION.split(doc)[0].strip()


def callers(doc: str) -> list[Caller]:
    """Return what a docstring shows of the source."""
    return [Caller(match[1], body) for title, body in _sections(doc) if (match := _CALLED_IN.fullmatch(title))]


def markdown(doc: str) -> str:
    """Return a docstring as Markdown, sections as lists and source in fences."""
    parts = [prose(doc), *(_section(title, body) for title, body in _sections(doc))]
    return "\n\n".join(part for part in parts if part) + "\n"


def _sections(doc: str) -> Iterator[tuple[str, str]]:
    """Yield the title and the text of each section; what follows a section at the margin is a part of it."""
    parts = _SECTION.split(doc)
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        yield title, textwrap.dedent(body).strip("\n").rstrip()


def _section(title: str, body: str) -> str:
    if _CALLED_IN.fullmatch(title):
        return f"{title}:\n\n```text\n{body}\n```"
    if title in ("Returns", "Yields"):
        return f"{title}: {_uncapitalised(body)}"
    return "\n".join([_TITLES.get(title, title), "", *(_entry(text) for text in _entries(body))])


def _entries(body: str) -> Iterator[str]:
    """Yield the entries of a section; the further lines of one are indented."""
    for text in re.split(r"\n(?=\S)", body):
        yield " ".join(text.split())


def _entry(text: str) -> str:
    match = _ENTRY.fullmatch(text)
    return f"- `{match[1]}`: {match[2]}" if match else f"- {text}"


def _uncapitalised(text: str) -> str:
    """Return a text that goes on after a colon; `None` and names in backticks stay as they are."""
    first, rest = text[:1], text[1:]
    return text if text.startswith("None") or rest[:1].isupper() else first.lower() + rest


def entries_of(doc: str, title: str) -> dict[str, str]:
    """Return the entries of one section of a docstring by their names."""
    texts = (text for name, body in _sections(inspect.cleandoc(doc)) if name == title for text in _entries(body))
    return {match[1]: match[2] for text in texts if (match := _ENTRY.fullmatch(text))}
