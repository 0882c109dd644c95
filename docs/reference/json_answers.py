"""What commands answer with `--json`, from the dataclasses that they name."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator
from typing import Any, Final

from docstrings import entries_of, first_sentence
from rlcore_plugin_testing.command_answers import Document, leaves
from tables import table

from rlcore.cli.command_line import parser

_NAMES: Final = {str: "text", int: "whole number", float: "number", bool: "true or false", Any: "anything"}


def document() -> str:
    """Return the keys that every document has."""
    return _keys(Document)


def answers() -> str:
    """Return the keys of `data` of each command."""
    parts = []
    for name, command in leaves(parser()).items():
        answer = command.get_default("answer")
        if answer is not None:
            about = f"{first_sentence(answer.__doc__)} Schema {command.get_default('schema')}."
            parts.append(f"## rlcore {name}\n\n{about}\n\n{_keys(answer)}")
    return "\n\n".join(parts)


def _keys(answer: Any) -> str:
    return table(["key", "value", "meaning"], [[f"`{key}`", value, meaning] for key, value, meaning in _rows(answer)])


def _rows(answer: Any, place: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield key, type and meaning of each field, and of those of the dataclasses below it."""
    meanings, hints = entries_of(answer.__doc__, "Attributes"), typing.get_type_hints(answer)
    for field in dataclasses.fields(answer):
        hint = hints[field.name]
        yield place + field.name, _type(hint), meanings.get(field.name, "")
        step, below = _below(hint)
        if below is not None:
            yield from _rows(below, f"{place}{field.name}{step}.")


def _below(hint: Any) -> tuple[str, Any]:
    """Return the dataclass within a type, and how its keys are reached from there."""
    if dataclasses.is_dataclass(hint):
        return "", hint
    steps = {list: "[]", dict: ".NAME"}
    within = ((_below(part), steps.get(typing.get_origin(hint), "")) for part in typing.get_args(hint))
    return next(((step + rest, below) for (rest, below), step in within if below is not None), ("", None))


def _type(hint: Any) -> str:
    """Return a type in the words of JSON."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join("null" if part is type(None) else _type(part) for part in parts)
    if origin is list:
        return f"list: {_type(parts[0])}"
    if origin is dict:
        return f"object, by name: {_type(parts[1])}"
    return "object" if dataclasses.is_dataclass(hint) else _NAMES[hint]
