"""The keys of a config section, as Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from tables import table

from rlcore.types.settings import Interval, Secret

_BOUNDS: Final = {
    "ge": "at least {}",
    "gt": "above {}",
    "le": "at most {}",
    "lt": "below {}",
    "min_length": "at least {} of them",
}


def key_table(schema: type[BaseModel]) -> str:
    """Return the table of the keys of a config section."""
    rows = [
        [f"`{name}`", type_of_field(field), default_of(field), field.description or ""]
        for name, field in schema.model_fields.items()
    ]
    return table(["key", "type", "default", "description"], rows) if rows else "No keys.\n"


def type_of_field(field: FieldInfo) -> str:
    """Return the type of a key, with its bounds."""
    is_interval = _is_interval(field.metadata)
    name = "interval" if is_interval else type_name(field.annotation)
    return ", ".join([name, *_bounds(field.metadata)])


def _bounds(metadata: Sequence[Any]) -> Iterator[str]:
    for entry in metadata:
        for name, words in _BOUNDS.items():
            bound = getattr(entry, name, None)
            if bound is not None:
                yield words.format("2^63" if bound == 2**63 else bound)


def _is_interval(metadata: Sequence[Any]) -> bool:
    return any(entry in Interval.__metadata__ for entry in metadata)  # type: ignore[attr-defined]


def type_name(annotation: Any) -> str:
    """Return a type as a reader of a TOML file thinks of it."""
    simple = {str: "text", int: "integer", float: "number", bool: "true or false", Any: "anything", Secret: "secret"}
    if annotation in simple:
        return simple[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return "interval" if _is_interval(arguments[1:]) else type_name(arguments[0])
    if origin is Literal:
        return " or ".join(f'`"{choice}"`' for choice in arguments)
    if origin in (list, set):
        return f"list of {type_name(arguments[0])}"
    if origin is tuple:
        return f"list of {len(arguments)}: {', '.join(map(type_name, arguments))}"
    if origin is dict:
        return f"table of {type_name(arguments[1])}"
    return " or ".join(type_name(choice) for choice in arguments if choice is not type(None))


def default_of(field: FieldInfo) -> str:
    """Return the default of a key, or that it is required."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    return "none" if value is None else f"`{json.dumps(value)}`"
