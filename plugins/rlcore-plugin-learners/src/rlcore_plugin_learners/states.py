"""States as nested dicts of plain values and arrays: chosen by path, and kept in a folder without pickle."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from rlcore_plugin_torch.tensor_files import Form, TensorFiles, dense, read_description, write_description
from torch import Tensor

from rlcore.errors import ConfigError, StorageError, describe, did_you_mean
from rlcore.files import replacing
from rlcore.state import bytes_of, flatten, unflatten

Paths = str | Iterable[str] | None

_FORMAT: Final = 1
STATE_FILE: Final = "state.json"


def chosen(parts: Mapping[str, Callable[[], Any]], components: Paths, not_components: Paths) -> dict[str, Any]:
    """Return the parts of a state that paths name.

    Args:
        parts: what makes each part, by name.
        components: paths such as `rl_module` or `rl_module/p0`; None for everything.
        not_components: paths of what to leave out.

    Raises:
        ConfigError: there is nothing at a path.
    """
    for path in _paths(components):
        _at(parts, [path.partition("/")[0]], path)
    whole = {name: make() for name, make in parts.items() if _touches(name, components)}
    state: dict[str, Any] = {}
    for path in _paths(components) if components is not None else list(parts):
        names = path.split("/")
        source, place = _at(whole, names[:-1], path), state
        for name in names[:-1]:
            place = place.setdefault(name, {})
        _at(source, names[-1:], path)
        place[names[-1]] = source[names[-1]]
    for path in _paths(not_components):
        names = path.split("/")
        _at(_at(state, names[:-1], path), names[-1:], path)
        _at(state, names[:-1], path).pop(names[-1])
    return state


def chosen_of(state: Mapping[str, Any], components: Paths, not_components: Paths = None) -> dict[str, Any]:
    """Return the parts of a state that is there already; see `chosen`."""
    return chosen({name: partial(state.get, name) for name in state}, components, not_components)


def has(state: Mapping[str, Any], path: str) -> bool:
    """Return whether a state has something at a path."""
    place: Any = state
    for name in path.split("/"):
        if not isinstance(place, Mapping) or name not in place:
            return False
        place = place[name]
    return True


def nested(path: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state that has another one at a path, and nothing else."""
    for name in reversed(path.split("/")):
        state = {name: state}
    return dict(state)


def below(part: str, paths: Paths) -> list[str] | None:
    """Return paths in a part of a state, of paths in it or in the whole; None for everything."""
    several = [path.removeprefix(f"{part}/") for path in _paths(paths) if path != part]
    return several or None


def _touches(name: str, components: Paths) -> bool:
    return components is None or name in {path.partition("/")[0] for path in _paths(components)}


def _paths(paths: Paths) -> list[str]:
    return [] if paths is None else [paths] if isinstance(paths, str) else list(paths)


def _at(state: Any, names: Iterable[str], path: str) -> Any:
    for name in names:
        if not isinstance(state, Mapping) or name not in state:
            there = [str(key) for key in state] if isinstance(state, Mapping) else []
            raise ConfigError(
                f"a state has nothing at {path!r}{did_you_mean(name, there)}; there are {', '.join(there) or 'none'}"
            )
        state = state[name]
    return state


def as_arrays(value: Any) -> Any:
    """Return a state with copies of its tensors as arrays."""
    if isinstance(value, Tensor):
        return value.detach().cpu().numpy().copy()
    if isinstance(value, Mapping):
        return {key: as_arrays(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(as_arrays(item) for item in value)
    return value


def as_tensors(value: Any) -> Any:
    """Return a state with copies of its arrays as tensors."""
    if isinstance(value, np.ndarray | np.generic):
        return torch.as_tensor(np.array(value))
    if isinstance(value, Mapping):
        return {key: as_tensors(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(as_tensors(item) for item in value)
    return value


def write_state(
    folder: Path, state: Mapping[str, Any], metadata: Mapping[str, Any], constructors: Mapping[str, Any]
) -> None:
    """Write a state into a folder, in the place of the one that is there; a crash leaves the one or the other.

    Args:
        folder: made where there is none.
        state: nested dicts of plain values and arrays.
        metadata: of JSON, for who reads the file.
        constructors: of JSON: classes and what they are constructed with.

    Raises:
        StorageError: it cannot be written, or holds what no file keeps.
    """
    tensors: dict[str, Tensor] = {}
    tree = flatten(dict(state), "", tensors)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"tensors-{secrets.token_hex(4)}.bin"
        described, checksum = _write_tensors(file, tensors)
        description = {
            "format": _FORMAT, "metadata": dict(metadata), "constructors": dict(constructors), "file": file.name,
            "checksum": checksum, "tensors": described, "tree": tree,
        }  # fmt: skip
        with replacing(folder / STATE_FILE) as place:
            write_description(place, description)
            _sync(place)
        _sync(folder)
        for other in folder.glob("tensors-*.bin"):
            if other != file:
                with suppress(OSError):
                    other.unlink()
    except OSError as error:
        raise StorageError(f"the state cannot be written to {str(folder)!r}: {describe(error)}") from error


def _write_tensors(file: Path, tensors: Mapping[str, Tensor]) -> tuple[dict[str, Any], str]:
    described: dict[str, Any] = {}
    digest = hashlib.blake2b(digest_size=16)
    offset = 0
    with file.open("xb") as stream:
        for name, tensor in tensors.items():
            whole = dense(name, tensor)
            content = bytes_of(whole)
            stream.write(content.data)
            digest.update(content.data)
            described[name] = {**Form.of(whole).described(), "offset": offset, "size": content.size}
            offset += content.size
        stream.flush()
        os.fsync(stream.fileno())
    return described, digest.hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_state(folder: Path) -> dict[str, Any]:
    """Return the state in a folder, verified.

    Raises:
        StorageError: there is none, or it is damaged.
    """
    try:
        description = read_description(folder / STATE_FILE)
        if description["format"] != _FORMAT:
            raise StorageError(f"{str(folder)!r} has the format {description['format']!r}, which is not known here")
        content = (folder / Path(description["file"]).name).read_bytes()
        if hashlib.blake2b(content, digest_size=16).hexdigest() != description["checksum"]:
            raise StorageError(f"the tensors in {str(folder)!r} are damaged: their checksum is another")
        files = TensorFiles(folder)
        tensors = {
            name: files.tensor(Form.read(entry), description["file"], entry["offset"], entry["size"]).clone()
            for name, entry in description["tensors"].items()
        }
        return unflatten(description["tree"], tensors)  # type: ignore[no-any-return]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StorageError(f"there is no state of a learner in {str(folder)!r}: {describe(error)}") from error


def read_constructors(folder: Path) -> Mapping[str, Any]:
    """Return the classes in a folder and what they are constructed with; empty where an earlier version wrote it.

    Raises:
        StorageError: there is no state.
    """
    try:
        constructors: Mapping[str, Any] = read_description(folder / STATE_FILE).get("constructors", {})
        return constructors
    except (OSError, ValueError, AttributeError) as error:
        raise StorageError(f"there is no state of a learner in {str(folder)!r}: {describe(error)}") from error
