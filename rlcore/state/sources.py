"""Hashes of the source files that results depend on: a version does not change when an installed file is edited.

Hashed are the packages of the plugins in use, plugins that are single files, modules beside the config and the modules
that these import, and the files of env classes. Other installed libraries are compared by their versions.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final

import xxhash

from rlcore.types import Env
from rlcore.types.part import with_defaults

PREFIX: Final = "source of "
_CORE: Final = "rlcore"
_INSTALLED: Final = {"site-packages", "dist-packages"}
_STANDARD: Final = Path(sysconfig.get_path("stdlib"))


def source_hashes(plugins: Mapping[str, str], used: Iterable[str]) -> dict[str, str]:
    """Return the hash of each distribution, package or single file, under names that begin with `PREFIX`.

    Args:
        plugins: module of each plugin that may change results, to its distribution or file.
        used: names of further modules, of components and env classes; their files count wherever they are.
    """
    owners = {_top(module): distribution for module, distribution in plugins.items()}
    roots = dict.fromkeys([*plugins, *used])
    hashes: dict[str, str] = {}
    for name in dict.fromkeys([*roots, *_reached(roots, owners)]):
        path, top = _file(name), _top(name)
        if path is None or _is_standard(path):
            continue
        package = _package(top) if top in owners or not _is_installed(path) else None
        if package is None:
            alone = name if _is_installed(path) or "." in name else path.name
            hashes[owners.get(top, alone)] = _hash([str(path)])
        elif (title := owners.get(top, top)) not in hashes:
            hashes[title] = _hash_of_plugin(package) if top in owners else _hash(_files(package))
    return {f"{PREFIX}{title}": hashes[title] for title in sorted(hashes)}


def source_differences(there: Mapping[str, str], here: Mapping[str, str]) -> list[str]:
    """Return a line for each source with another hash in the checkpoint than here."""
    # a source that one side lacks follows from another config or plugin, which is compared elsewhere
    names = [name for name in there if name.startswith(PREFIX) and name in here]
    return [f"the {name} is not what the checkpoint was made with" for name in names if there[name] != here[name]]


def without_sources(domain: Mapping[str, str]) -> dict[str, str]:
    """Return the entries of a domain without the hashes of sources."""
    return {name: value for name, value in domain.items() if not name.startswith(PREFIX)}


def module_of(place: Any) -> str:
    """Return the module name of a class or function, or of a place `"package.module:Name"`."""
    return place.partition(":")[0] if isinstance(place, str) else str(place.__module__)


def modules_of(part: Any) -> Iterator[str]:
    """Yield the module name of the class of a part, and those that its method `modules()` returns."""
    yield type(part).__module__
    # a module of torch has a method `modules()` too, which returns no names
    yield from (name for name in with_defaults(part, Env).modules() if isinstance(name, str))


def _reached(roots: Iterable[str], owners: Mapping[str, str]) -> Iterator[str]:
    """Yield the roots, the modules that they import, and those that these import, without installed libraries."""
    waiting, met = list(roots), set(roots)
    while waiting:
        name = waiting.pop()
        module = sys.modules.get(name)
        if module is None or not _is_own(module, owners):
            continue
        yield name
        if _top(name) != _CORE:
            used = (_used_by_plugin if _top(name) in owners else _used_by)(module) - met
            met |= used
            waiting += used


def _used_by(module: ModuleType) -> set[str]:
    """Return the names of the modules that define the globals of a module."""
    values = list(vars(module).values())
    modules = {value.__name__ for value in values if isinstance(value, ModuleType)}
    return modules | {
        str(value.__module__ if isinstance(value, type | FunctionType) else type(value).__module__) for value in values
    }


# cached, as a process goes on with the code that it imported
_used_by_plugin = cache(_used_by)


def _is_own(module: ModuleType, owners: Mapping[str, str]) -> bool:
    path = _file(module.__name__)
    return path is not None and not _is_standard(path) and (_top(module.__name__) in owners or not _is_installed(path))


def _file(name: str) -> Path | None:
    path = getattr(sys.modules.get(name), "__file__", None)  # built-in modules have none
    return _path(path) if path else None


# one object for each path: making it and looking at its parts takes longer than the rest of this file
_path = cache(Path)


def _package(top: str) -> str | None:
    """Return the folder of a package; None for a single module and for a namespace package."""
    path = _file(top)
    return str(path.parent) if path is not None and path.name == "__init__.py" else None


def _files(package: str) -> Iterator[str]:
    """Yield all source files of a package, as which of them are imported differs from run to run."""
    with os.scandir(package) as entries:
        below = sorted(entries, key=lambda entry: entry.name)
    for entry in below:
        if entry.name.endswith(".py"):
            yield entry.path
        elif entry.is_dir() and os.path.isfile(os.path.join(entry.path, "__init__.py")):
            yield from _files(entry.path)


@cache
def _hash_of_plugin(package: str) -> str:
    """Return the hash of a package; cached, as a process goes on with the code that it imported."""
    return _hash(_files(package))


def _hash(files: Iterable[str]) -> str:
    digest = xxhash.xxh3_128()
    for path in files:
        digest.update(os.path.basename(path).encode())
        try:
            with open(path, "rb", buffering=0) as stream:
                digest.update(stream.readall())
        except OSError:  # gone since it was imported
            digest.update(b"absent")
    return digest.hexdigest()


@cache
def _is_installed(path: Path) -> bool:
    return not _INSTALLED.isdisjoint(path.parts)


@cache
def _is_standard(path: Path) -> bool:
    return path.is_relative_to(_STANDARD) and not _is_installed(path)


def _top(name: str) -> str:
    return name.partition(".")[0]
