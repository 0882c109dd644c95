"""The wrappers that a config puts around each env: Gymnasium's by name, and others by module and class."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any, Final

import gymnasium
import numpy as np

from rlcore.config import import_named
from rlcore.errors import FROM_OUTSIDE, ConfigError, describe, did_you_mean

_KEY: Final = "[env] wrappers"
_UNSAID: Final = (TypeError, ValueError)  # by what does not say which arguments it takes


def wrapped(env: gymnasium.Env[Any, Any], entries: Iterable[str | Mapping[str, Any]]) -> gymnasium.Env[Any, Any]:
    """Return an env with wrappers around it, the first one inside.

    Args:
        env: the env.
        entries: of the config: the name of each, or a table of it and its arguments.

    Raises:
        ConfigError: there is no such wrapper, or it does not take these arguments; says which.
    """
    for number, entry in enumerate(entries):
        arguments = {} if isinstance(entry, str) else dict(entry)
        name = entry if isinstance(entry, str) else str(arguments.pop("use"))
        place = f"{_KEY}[{number}] = {name!r}"
        env = _built(_kind(name, place), env, arguments, place)
    return env


def _kind(name: str, place: str) -> Any:
    """Return the class of a wrapper.

    Raises:
        ConfigError: there is none.
    """
    if ":" in name:
        return import_named(name, _KEY)
    names = [wrapper for wrapper in gymnasium.wrappers.__all__ if wrapper[0].isupper()]
    if name not in names:
        raise ConfigError(
            f"{place}: Gymnasium has no such wrapper{did_you_mean(name, names)}; one of your own is 'module:Class'"
        )
    try:
        return getattr(gymnasium.wrappers, name)  # one of the names that it lists
    except ImportError as error:
        raise ConfigError(f"{place} needs a package that is not installed: {error}") from error


def _built(kind: Any, env: Any, arguments: Mapping[str, Any], place: str) -> gymnasium.Env[Any, Any]:
    try:
        parameters = list(inspect.signature(kind).parameters.values())[1:]  # the first is the env
    except _UNSAID:
        parameters = []
    if parameters and not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        _check(arguments, parameters, place)
    try:
        made = kind(env, **_fitting_all(arguments, parameters, place))
    except (*FROM_OUTSIDE, ConfigError):
        raise
    except BaseException as error:  # an exit too
        raise ConfigError(f"{place} cannot be put around {env}: {describe(error)}") from error
    if not isinstance(made, gymnasium.Env):
        raise ConfigError(f"{place} returned {type(made).__name__}, which is no gymnasium.Env")
    return made


def _check(arguments: Mapping[str, Any], parameters: list[inspect.Parameter], place: str) -> None:
    """Refuse arguments that a wrapper does not take, and the lack of those that it needs.

    Raises:
        ConfigError: says which.
    """
    names = [parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_POSITIONAL]
    for name in arguments:
        if name not in names:
            takes = f"it takes {', '.join(names)}" if names else "it takes none"
            raise ConfigError(f"{place}: unknown argument {name!r}{did_you_mean(name, names)}; {takes}")
    needed = [p.name for p in parameters if p.default is p.empty and p.name in names and p.name not in arguments]
    if needed:
        example = ", ".join(f"{name} = ..." for name in needed)
        raise ConfigError(f"{place} needs {' and '.join(needed)}: write it as a table, {{ use = ..., {example} }}")


def constructed(id: str, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return `[env] kwargs` as the constructor of an env takes them: "module:name" where it says a function or class.

    Args:
        id: of the env, which is registered.
        kwargs: of the config.

    Raises:
        ConfigError: there is no such function.
    """
    entry = gymnasium.spec(id.rpartition(":")[2]).entry_point
    try:
        kind = gymnasium.envs.registration.load_env_creator(entry) if isinstance(entry, str) else entry
        parameters = list(inspect.signature(kind).parameters.values()) if kind is not None else []
    except (*_UNSAID, ImportError, AttributeError):  # making the env says so
        parameters = []
    return _fitting_all(kwargs, parameters, "[env] kwargs")


def _fitting_all(arguments: Mapping[str, Any], parameters: Iterable[inspect.Parameter], place: str) -> dict[str, Any]:
    annotations = {parameter.name: str(parameter.annotation) for parameter in parameters}
    return {name: _fitting(name, value, annotations, place) for name, value in arguments.items()}


def _fitting(name: str, value: Any, annotations: Mapping[str, str], place: str) -> Any:
    """Return an argument as its annotation says: TOML has neither tuples, nor arrays, nor functions."""
    annotation = annotations.get(name, "")
    if isinstance(value, list):
        if "ndarray" in annotation:
            return np.asarray(value, dtype=np.float32)
        return tuple(value) if "tuple" in annotation else value
    if isinstance(value, str) and "Callable" in annotation:
        return import_named(value, f"{place} {name}")
    return value
