"""The keyword arguments of a class of TorchRL: their names and types, read from its signature."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import json
import sys
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final, Literal, Union

import torch
from pydantic import ConfigDict, TypeAdapter, ValidationError

from rlcore.errors import ConfigError, did_you_mean

_PLAIN: Final = (bool, int, float, str, type(None))
_CHECKED: Final = ConfigDict(strict=True)


@dataclasses.dataclass(frozen=True)
class Keywords:
    """What a class can be called with.

    Attributes:
        parameters: by name, without `self`.
        hints: the types that a config can be held against, by name; none for a type that TOML has no words for.
        is_open: whether it hands further keyword arguments on, as an env does to the library that it wraps.
    """

    parameters: Mapping[str, inspect.Parameter]
    hints: Mapping[str, Any]
    is_open: bool

    @property
    def required(self) -> tuple[str, ...]:
        """The parameters without a default."""
        return tuple(
            name for name, parameter in self.parameters.items() if parameter.default is inspect.Parameter.empty
        )


@cache
def keywords_of(part: type) -> Keywords:
    """Return the keyword arguments of a class, those of its base classes too where it hands them on.

    Args:
        part: a class of TorchRL.
    """
    parameters: dict[str, inspect.Parameter] = {}
    hints: dict[str, Any] = {}
    for owner in inspect.getmro(part):
        function = vars(owner).get("__init__")
        if owner is object or function is None:
            continue
        own = list(inspect.signature(function).parameters.values())[1:]
        for parameter in own:
            if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                parameters.setdefault(parameter.name, parameter)
                hint = _hint(parameter.annotation, sys.modules[owner.__module__])
                if hint is not None:
                    hints.setdefault(parameter.name, hint)
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in own):
            break
    wraps = "_EnvWrapper" in {owner.__name__ for owner in inspect.getmro(part)}
    kinds = {parameter.kind for parameter in inspect.signature(part).parameters.values()}
    return Keywords(parameters, hints, wraps and inspect.Parameter.VAR_KEYWORD in kinds)


def checked_keywords(
    part: type,
    values: Mapping[str, Any],
    key: str,
    provided: Iterable[str] = (),
    refused: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the keyword arguments that a config gives a class of TorchRL, each held against its signature.

    Args:
        part: the class.
        values: of the config, by name.
        key: where the config says so, for messages.
        provided: arguments that rlcore gives it, so that the config need not.
        refused: arguments that only rlcore gives it, with what to say instead.

    Returns:
        The values, with names of types and activations replaced by what they name.

    Raises:
        ConfigError: a name that it does not take, with the nearest one; a value of another type; a missing argument.
    """
    keywords, problems = keywords_of(part), []
    for name in values:
        if refused and name in refused:
            problems.append(f"{key} {name}: {refused[name]}")
        elif not _takes(keywords, name):
            names = [known for known in keywords.parameters if known not in (refused or {})]
            guess = did_you_mean(name, names) or f"; it takes {', '.join(names) or 'no arguments'}"
            problems.append(f"{key} {name}: {part.__name__} takes no such argument{guess}")
    missing = [name for name in keywords.required if name not in values and name not in provided]
    problems += [f"{key} {name}: missing, and {part.__name__} needs it" for name in missing]
    converted = {}
    for name, value in values.items():
        try:
            converted[name] = _converted(value, keywords.hints.get(name), keywords.parameters.get(name))
        except ValueError as error:
            problems.append(f"{key} {name}: {error}; found {value!r} ({part.__name__} of TorchRL)")
    if problems:
        raise ConfigError("; ".join(problems))
    return converted


def _takes(keywords: Keywords, name: str) -> bool:
    """Return whether a class has an argument, or hands it on; what is all but one that it has is misspelled."""
    if name in keywords.parameters or not keywords.is_open:
        return name in keywords.parameters
    return not difflib.get_close_matches(name, keywords.parameters, cutoff=0.85)


def _converted(value: Any, hint: Any, parameter: inspect.Parameter | None) -> Any:
    """Return what a value of a config stands for."""
    text = str(parameter.annotation) if parameter is not None else ""
    if isinstance(value, str) and "dtype" in text:
        return _torch_name(value, torch, torch.dtype)
    if isinstance(value, str) and ("activation" in (parameter.name if parameter else "") or "nn.Module" in text):
        return _torch_name(value, torch.nn, type)
    if hint is None:
        return value
    try:
        return TypeAdapter(hint, config=_CHECKED).validate_json(json.dumps(value))
    except ValidationError as error:
        raise ValueError(" or ".join(dict.fromkeys(str(problem["msg"]) for problem in error.errors()))) from None


def _torch_name(value: str, module: Any, kind: type) -> Any:
    name = value.rpartition(".")[2]
    named = vars(module).get(name)
    if not isinstance(named, kind):
        names = [known for known, other in vars(module).items() if isinstance(other, kind) and known[0] != "_"]
        raise ValueError(f"{module.__name__} has no {name!r}{did_you_mean(name, names)}")
    return named


def _hint(annotation: Any, module: Any) -> Any:
    """Return the part of an annotation that TOML has words for; None where there is none, or it cannot be read."""
    if annotation is inspect.Parameter.empty:
        return None
    if isinstance(annotation, str):
        try:
            annotation = eval(annotation, vars(module))
        except Exception:  # it names what is imported for type checkers alone
            return None
    return _words(annotation)


def _words(annotation: Any) -> Any:
    origin, members = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation in _PLAIN:
        return annotation
    if origin is Literal:
        return annotation
    if origin in (Union, types.UnionType):
        known = [_words(member) for member in members if member is not types.NoneType]
        return None if None in known or not known else Union[(*known, *_none_of(members))]
    if origin in (list, Sequence, tuple) and members:
        known = [Ellipsis if member is Ellipsis else _words(member) for member in members]
        return None if None in known else (list if origin is Sequence else origin)[tuple(known)]
    return None


def _none_of(members: Sequence[Any]) -> list[Any]:
    return [None] if types.NoneType in members else []
