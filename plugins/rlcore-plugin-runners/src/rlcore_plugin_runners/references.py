"""Classes and functions of a script by name, so that a config can hold them and every process finds them."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import reduce
from pathlib import Path
from typing import Any

import tomli_w

from rlcore.errors import ConfigError


def reference_to(what: str, target: Any) -> str:
    """Return the reference to a class or function: `module:Name`, or `/path/of/script.py:Name`.

    Args:
        what: it is, for messages.
        target: the class or function.

    Raises:
        ConfigError: no process besides this one would find it.
    """
    module, name = getattr(target, "__module__", None), getattr(target, "__qualname__", None)
    if module == "__main__":
        module = getattr(sys.modules["__main__"], "__file__", None)
        module = None if module is None else str(Path(module).absolute())
    reference = f"{module}:{name}"
    if module is None or name is None or "<" in name or not _names(reference, target):
        raise ConfigError(
            f"{what} = {name or target}: it has no name in a module, by which a run finds it again; define it at the "
            "top of a file"
        )
    return reference


def _names(reference: str, target: Any) -> bool:
    try:
        return found(reference) is target
    except ConfigError:
        return False


def found(reference: str) -> Any:
    """Return what a reference names.

    Raises:
        ConfigError: there is nothing of that name.
    """
    place, _, name = reference.rpartition(":")
    module = _of_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    try:
        return reduce(getattr, name.split("."), module)
    except AttributeError as error:
        raise ConfigError(f"{reference}: {error}; it was there when the run was put together") from error


def _of_file(path: Path) -> Any:
    """Return the module of a script, which is imported once if it is not the one that runs."""
    main = sys.modules["__main__"]
    if Path(getattr(main, "__file__", None) or "").absolute() == path:
        return main
    name = f"rlpyt_script_{path.stem}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def plain(what: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return arguments that a config can hold.

    Raises:
        ConfigError: it cannot.
    """
    try:
        tomli_w.dumps(arguments)
    except TypeError as error:
        raise ConfigError(
            f"{what}: {error}; a config holds numbers, words, lists and dicts of them, so make the rest inside of the "
            "class"
        ) from error
    return arguments
