"""Validating the keys of a section, and saying what is wrong in the words of the config."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from rlcore.config.common_keys import DEFAULTS, Defaults
from rlcore.config.core import CORE_SECTIONS, CheckpointConfig
from rlcore.config.raw import VERSIONS, RawConfig
from rlcore.errors import did_you_mean
from rlcore.plugins.component import COMPONENT_SECTIONS


def core_section(raw: RawConfig, section: str, problems: list[str], defaults: Defaults | None = None) -> Any:
    """Return the validated core section, or None after adding to `problems`."""
    schema = CORE_SECTIONS.get(section, CheckpointConfig)
    keys = raw.values.get(section, {})
    wrong_lines: list[str] = []
    filled = keys if defaults is None else defaults.fill(section, schema.model_fields, keys)
    model = checked(schema, filled, section, "the core", wrong_lines)
    problems += [raw.with_source(line, section, section) for line in wrong_lines]
    return model


def checked(
    schema: type[BaseModel],
    keys: Mapping[str, Any],
    section: str,
    owner: str,
    problems: list[str],
    more: Iterable[str] = (),
) -> BaseModel | None:
    """Return the validated keys of a section, or None after adding to `problems`."""
    lines, model, values = _parsed(schema, keys, section, owner, more)
    lines += [
        f"[{section}] {key}: {wrong}; found {value!r} ({owner})"
        for key, value in keys.items()
        if key in values and repr(value) != _default(schema, key) and (wrong := _misread(value, values[key]))
    ]
    problems += lines
    return None if lines else model


def _parsed(
    schema: type[BaseModel], keys: Mapping[str, Any], section: str, owner: str, more: Iterable[str]
) -> tuple[list[str], BaseModel | None, dict[str, Any]]:
    """Return what is wrong with a section, its model where nothing is, and what each right key was taken for."""
    try:
        model = schema.model_validate(keys)
        values = dict(iter(model))  # the keys of a section may be called `keys`
        return [], model, {key: values.get(key) for key in keys}
    except ValidationError as error:
        lines = explain(error, schema, section, owner, more)
        wrong = {problem["loc"][0]: problem["type"] for problem in error.errors() if problem["loc"]}
    keys_of_schema = {key: value for key, value in keys.items() if wrong.get(key) != "extra_forbidden"}
    if len(keys_of_schema) < len(keys):  # what depends on several keys is only looked at where each of them can be read
        further, _, values = _parsed(schema, keys_of_schema, section, owner, more)
        return list(dict.fromkeys([*lines, *further])), None, values
    return lines, None, {key: _alone(schema, key, value) for key, value in keys.items() if key not in wrong}


def _alone(schema: type[BaseModel], key: str, value: Any) -> Any:
    """Return what one key of a section is taken for; itself where that needs the whole section."""
    entry = schema.model_fields.get(key)
    try:
        return value if entry is None else TypeAdapter(entry.rebuild_annotation()).validate_python(value)
    except ValidationError:
        return value


def _misread(written: Any, read: Any) -> str:
    """Say what is wrong when text, numbers and truth values were turned into each other, or a number is not finite."""
    if isinstance(written, list) and isinstance(read, list | tuple):
        return next((wrong for pair in zip(written, read, strict=False) if (wrong := _misread(*pair))), "")
    if isinstance(written, dict) and isinstance(read, dict):
        return next((wrong for key in written if (wrong := _misread(written[key], read.get(key)))), "")
    if isinstance(written, float) and not math.isfinite(written):
        return "must be a finite number"
    was, became = _kind(written), _kind(read)
    return f"must be {became}" if was and became and was != became else ""


def _default(schema: type[BaseModel], key: str) -> str:
    """Return the default of a key as text; it fits whatever it is, and a resolved config says it too."""
    return repr(schema.model_fields[key].default) if key in schema.model_fields else ""


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, str):
        return "text"
    return "a number" if isinstance(value, int | float) else ""


def check_section_names(raw: RawConfig, problems: list[str]) -> None:
    """Add a problem for each section that nothing knows."""
    sections = [*CORE_SECTIONS, *COMPONENT_SECTIONS]
    for section in raw.values:
        if section not in sections and section not in (VERSIONS, DEFAULTS):
            kind = "; a launcher is named by [ranks] use" if section == "launcher" else ""
            problems.append(f"[{section}]: unknown section{kind or did_you_mean(section, [*sections, DEFAULTS])}")


def explain(
    error: ValidationError, schema: type[BaseModel], section: str, owner: str, more: Iterable[str] = ()
) -> list[str]:
    """Return one line per problem: section, key, what was expected, whose it is, the nearest known key.

    Args:
        error: of the validation.
        schema: of the section.
        section: where it stands.
        owner: whose it is.
        more: keys of the section that are not in the schema.
    """
    lines = []
    for problem in _united(error.errors(), schema):
        key = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            names = [*_keys_at(schema, problem["loc"][:-1]), *more]
            guess = (
                _misplaced(key)
                or did_you_mean(str(problem["loc"][-1]), names)
                or f"; known keys: {', '.join(names) or 'none'}"
            )
            lines.append(f"[{section}] {key}: unknown key for {owner}{guess}")
        elif problem["type"] == "missing":
            lines.append(f"[{section}] {key}: missing, and {owner} needs it")
        else:
            said = f"; found {problem['input']!r}" if not isinstance(problem["input"], dict) else ""
            place = f"[{section}] {key}:" if key else f"[{section}]"  # several keys, which the message names
            # some messages say themselves what was found
            lines.append(f"{place} {problem['msg'].removeprefix('Value error, ').removesuffix(said)}{said} ({owner})")
    return lines


def _united(problems: Iterable[Mapping[str, Any]], schema: type[BaseModel]) -> list[dict[str, Any]]:
    """Return problems; what is wrong with a value for each of the types that its key may have is one of them."""
    united: list[dict[str, Any]] = []
    for problem in map(dict, problems):
        key, *rest = problem["loc"] or ("",)
        field_info = schema.model_fields.get(key)
        if rest and field_info is not None and _has_several_types(field_info.annotation):
            problem["loc"] = (key, *rest[1:])  # without the name of the type
            same = [other for other in united if other["loc"] == problem["loc"]]
            if same:
                same[0]["msg"] += f", or {problem['msg'].removeprefix('Input should be ')}"
                continue
        united.append(problem)
    return united


def _has_several_types(annotation: Any) -> bool:
    types = [member for member in get_args(annotation) if member is not NoneType]
    return get_origin(annotation) in (Union, UnionType) and len(types) > 1


def _misplaced(key: str) -> str:
    """Return where a section belongs that was written as a key, as `hook = []` below `[run]` is; else nothing."""
    return (
        f"; it is a section: write {key} = ... at the top, before the first section"
        if key in COMPONENT_SECTIONS
        else ""
    )


def _keys_at(schema: Any, location: tuple[Any, ...]) -> list[str]:
    for part in location:
        field_info = _fields(schema).get(part)
        schema = field_info.annotation if field_info else None
    return list(_fields(schema))


def _fields(schema: Any) -> dict[str, FieldInfo]:
    """Return the keys of a schema; none of a type that is no schema."""
    return schema.model_fields if isinstance(schema, type) and issubclass(schema, BaseModel) else {}
