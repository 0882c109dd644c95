"""Modules of the user's own that a config names, such as `id = "my_envs:Grid-v0"`, where they lie beside it."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from rlcore.config.raw import RawConfig
from rlcore.errors import FROM_OUTSIDE, ConfigError, describe, did_you_mean
from rlcore.plugins.component import COMPONENT_SECTIONS

log = logging.getLogger(__name__)

# a number after the colon is that of a device or a port, as in `cuda:0`
_PLACE: Final = re.compile(r"([A-Za-z_]\w*)((?:\.[A-Za-z_]\w*)*):(?!\d+$)[A-Za-z_0-9]")
# sections that write and save, in which such a value is a name of theirs: a project, a group, an address
_NO_MODULES: Final = ("logger", "checkpoint")
# what configs of this process put on the path, so that the modules of the latest are found first
_added: list[str] = []
# the folders of the configs of this process, for what was meant by a module that is missing
_beside: set[Path] = set()


def places_in(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the key and the text of each value of the form `"module:Name"`."""
    for section, value in values.items():
        if section in COMPONENT_SECTIONS and section not in _NO_MODULES:
            yield from ((key, text) for key, text in _texts(value, section) if _PLACE.match(text))


def named_modules(raw: RawConfig) -> dict[str, str]:
    """Return the modules that values of the form `"module:Name"` may name, to the key that does."""
    return {text.partition(":")[0]: key for key, text in places_in(raw.values)}


def meant(missing: str) -> str:
    """Return which module beside a config may have been meant by one that is missing, as the end of a message."""
    return did_you_mean(missing, {file.stem for folder in _beside for file in folder.glob("*.py")})


def folders_of(raw: RawConfig, path: Iterable[str]) -> list[Path]:
    """Return the folders that the modules of a config are imported from.

    They are those of `[plugins] path`, and of the folders of the config and of what it extends those in which a module
    lies that the config names.
    """
    tops = {name.partition(".")[0] for name in named_modules(raw)}
    beside = [folder for folder in raw.folders if any(_file(folder, top) for top in tops)]
    return list(dict.fromkeys([*(raw.base / name for name in path), *beside]))


def make_importable(raw: RawConfig, folders: list[Path]) -> list[str]:
    """Put folders at the end of the path, where they hide nothing that is installed, also in the processes of workers.

    Returns:
        A problem for each folder that is none, and for each module that cannot be the one beside the config.
    """
    problems = [f"[plugins] path: {str(folder)!r} is no folder" for folder in folders if not folder.is_dir()]
    placed = [place for place in sys.path if place in _added]
    at = sys.path.index(placed[0]) if placed else len(sys.path)
    there = {str(Path(place or ".").resolve()) for place in sys.path}
    new = [str(folder) for folder in folders if str(folder) not in there]
    sys.path[at:at] = new
    _added.extend(new)
    _beside.update(raw.folders)
    importlib.invalidate_caches()
    for name, place in named_modules(raw).items():
        problems += _problem(name.partition(".")[0], place, folders)
    return problems


def _problem(top: str, place: str, folders: list[Path]) -> Iterator[str]:
    """Yield what is wrong with the module that a key names, or warn of it."""
    ours = next((file for folder in folders if (file := _file(folder, top))), None)
    imported = _file_imported(top)
    if ours is not None and (not imported or Path(imported).resolve() != ours.resolve()):
        if imported and any(Path(imported).is_relative_to(folder) for folder in _added):
            yield (
                f"{place}: the module {top!r} is that of {imported}, imported for another config of this process; "
                f"{ours} needs another name, or a process of its own"
            )
        else:
            log.warning(
                "%s: the module %r is %s, not %s: what is installed comes first; rename the file to use it",
                *(place, top, imported or "built in", ours),
            )


def _texts(value: Any, section: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of a section with the key of each, however deep they lie; `use` of a section names its plugin."""
    waiting: list[tuple[str, Any, bool]] = [("", value, False)]
    while waiting:
        key, value, listed = waiting.pop()
        if isinstance(value, str):
            yield f"[{section}] {key}".rstrip(), value
        elif isinstance(value, list):
            waiting += [(key, item, bool(key)) for item in value]
        elif isinstance(value, dict):
            below = ((name, item) for name, item in value.items() if listed or name != "use")
            waiting += [(f"{key}.{name}".lstrip("."), item, listed) for name, item in below]


def _file(folder: Path, top: str) -> Path | None:
    """Return the file of a module in a folder; a folder without `__init__.py` is none, whatever it is called."""
    files = (folder / f"{top}.py", folder / top / "__init__.py")
    return next((file for file in files if file.is_file()), None)


def _file_imported(top: str) -> str | None:
    """Return the file of the module that an import gives; empty where it has none, None where nothing is found."""
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):  # ValueError: it is imported and has no spec
        spec = None
    if spec is None and top not in sys.modules:
        return None
    return str((spec and spec.origin) or vars(sys.modules.get(top, sys)).get("__file__") or "")


def import_named(place: str, key: str) -> Callable[..., Any]:
    """Import and return what `place` names.

    Args:
        place: `"module:Name"`; a dotted module, and a dotted name within it, are fine.
        key: where the config says so, for messages, as in `[model] encoder`.

    Raises:
        ConfigError: it is not of that form, cannot be imported, has no such name, or is nothing that can be called.
    """
    module_name, colon, name = place.partition(":")
    if not colon or not module_name or not name:
        raise ConfigError(f"{key} = {place!r}: expected 'module:Name', such as 'my_nets:Encoder'")
    target: Any = _module(module_name, key, place)
    for part in name.split("."):
        names = vars(target)
        if part not in names:
            public_names = [name for name in names if not name.startswith("_")]
            raise ConfigError(f"{key} = {place!r}: {module_name} has no {part!r}{did_you_mean(part, public_names)}")
        target = names[part]
    if not callable(target):
        raise ConfigError(f"{key} = {place!r}: a {type(target).__name__} cannot be called to build anything")
    named: Callable[..., Any] = target
    return named


def _module(name: str, key: str, place: str) -> Any:
    try:
        return importlib.import_module(name)
    except FROM_OUTSIDE:
        raise
    except BaseException as error:
        absent = isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}.")
        if absent:
            raise ConfigError(
                f"{key} = {place!r}: there is no module {name!r}{meant(name)}; put its file beside the config, name "
                "its folder in [plugins] path, or install the package that has it"
            ) from error
        raise ConfigError(f"{key} = {place!r}: importing {name} failed: {describe(error)}") from error
