"""Packages whose public names are imported when they are first used.

`import rlcore` imports neither torch nor tensordict, and who lists plugins need not wait for what plugins use.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def lazy(
    package: str,
    places: Mapping[str, str],
    otherwise: Callable[[str], Any] | None = None,
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of a package.

    A package says the same once more under `TYPE_CHECKING`, for those who read types; a test compares the two.

    Args:
        package: its `__name__`.
        places: public names, with spaces between them, by the module that has them; beside the name of the package
            itself, modules of it.
        otherwise: returns the value of any other name, or raises `AttributeError`.
    """
    modules = {name: module for module, names in places.items() for name in names.split()}

    def get(name: str) -> Any:
        if modules.get(name) == package:
            return importlib.import_module(f"{package}.{name}")
        if name in modules:
            return getattr(importlib.import_module(modules[name]), name)  # this is how Python asks for it
        if otherwise is not None:
            return otherwise(name)
        raise unknown(package, name)

    return sorted(modules), get, lambda: list(sys.modules[package].__all__)


def unknown(package: str, name: str, lent: Iterable[str] = ()) -> AttributeError:
    """Return the error for a name that a package does not have, with the nearest of its own and of those lent to it."""
    from importlib.util import find_spec

    from rlcore.errors import did_you_mean

    # `from package import module` asks for the attribute first, and need not wait for a guess
    is_module = not name.startswith("_") and find_spec(f"{package}.{name}") is not None
    names = (*vars(sys.modules[package]).get("__all__", ()), *lent)
    guess = "" if is_module or name.startswith("_") else did_you_mean(name, names)
    return AttributeError(f"module {package!r} has no attribute {name!r}{guess}")
