"""What a row depends on, as a mapping of dotted keys, and where it differs from what a finished row depended on."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from rlcore.errors import ConfigError
from rlcore.run_folder import leaves
from rlcore_plugin_bench import rlcore_row
from rlcore_plugin_bench.machine import versions_of
from rlcore_plugin_bench.row import Row, place_of

VERSIONS: Final = "versions."
# they name the run, watch it, or keep what it wrote, and change none of its figures
_FREE: Final = ("run.name", "run.folder", "run.hang_after", "plugins.", "logger.", "checkpoint.", "versions.")
# in every row, and no cause of another result that a minor version would tell
_NO_CAUSE: Final = ("python", "numpy", "tensordict")


@dataclass(frozen=True)
class Identity:
    """What a row depends on.

    Attributes:
        inputs: by dotted key.
        versions: of all packages that are used, by name; empty where the interpreter is not known.
        defaults: keys of `inputs` that have their defaults, or the tables that such keys lie in.
    """

    inputs: dict[str, Any]
    versions: dict[str, str]
    defaults: tuple[str, ...] = ()

    @property
    def hash(self) -> str:
        """Hash of the inputs."""
        return hash_of(self.inputs)


def hash_of(inputs: Mapping[str, Any]) -> str:
    """Return the hash of what a row depends on."""
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:16]


def identity_of(row: Row, python: str | None) -> Identity:
    """Return what a row depends on.

    Args:
        row: of rlcore, or of a peer.
        python: the interpreter of a peer; None where it is not known, and then its versions are not either.

    Raises:
        ConfigError: its config does not fit, or a file of its command is missing; names the row and the key.
    """
    inputs, versions, defaults = _of_rlcore(row) if row.how.kind == "rlcore" else (*_of_peer(row, python), ())
    task = row.of_task
    inputs |= {"task.score": task.score, "task.last": task.averaged}
    if row.data is not None and row.data.exists():
        inputs["data"] = _checksum(row.data)
    inputs |= {f"{VERSIONS}{name}": _minor(text) for name, text in versions.items() if name not in _NO_CAUSE}
    places = {} if row.data is None else {os.path.abspath(row.data): "{data}"}
    places[os.path.abspath(row.file.folder)] = "{here}"
    return Identity({key: _without(value, places) for key, value in inputs.items()}, versions, defaults)


def differences(inputs: Mapping[str, Any], identity: Identity, versions: bool = True) -> Iterator[str]:
    """Yield what a row depended on that is otherwise now.

    A key that has its default now may be absent in a row of an rlcore that had no such key.

    Args:
        inputs: of the row; where they were not recorded nothing is known.
        identity: what the row would depend on now.
        versions: whether versions count; those of an interpreter that is not known never do.
    """
    if not inputs:
        return
    now = identity.inputs
    for key in sorted({*inputs, *now}):
        unknown = key == "data" and key not in now
        if key.startswith(VERSIONS):
            unknown = not versions or key not in now or key not in inputs
        is_new = key not in inputs and any(key == name or key.startswith(f"{name}.") for name in identity.defaults)
        if not unknown and not is_new and inputs.get(key) != now.get(key):
            yield f"{key} = {_shown(now, key)} now, {_shown(inputs, key)} in the row"


def _shown(values: Mapping[str, Any], key: str) -> str:
    return json.dumps(values[key]) if key in values else "not there"


def _of_rlcore(row: Row) -> tuple[dict[str, Any], dict[str, str], tuple[str, ...]]:
    config = rlcore_row.config_of(row)
    resolved = config.resolved()
    values = json.loads(json.dumps(leaves(resolved), default=str))
    inputs = {f"config.{key}": value for key, value in values.items() if not key.startswith(_FREE)}
    versions = {name: str(text) for name, text in resolved["versions"].items()}
    return inputs, versions, tuple(f"config.{key}" for key in config.default_keys())


def _of_peer(row: Row, python: str | None) -> tuple[dict[str, Any], dict[str, str]]:
    assert row.how.command is not None
    script, *arguments = row.how.command
    inputs: dict[str, Any] = {"command": [script, *arguments], "seed": row.seed, "result": row.how.result}
    for name in (script, *map(str, row.how.files)):
        path = place_of(row.file, Path(row.filled(name)))
        if not path.is_file():
            raise ConfigError(f"{row}: command: there is no file {str(path)!r}")
        inputs[f"file.{name}"] = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    versions = {} if python is None else versions_of(python, tuple(row.how.packages))
    missing = [name for name, version in versions.items() if not version]
    if missing:
        raise ConfigError(f"{row}: {python} has no {', '.join(missing)}, which `packages` names")
    return inputs, versions


def _minor(version: str) -> str:
    return ".".join(version.split("+")[0].split(".")[:2])


def _without(value: Any, places: Mapping[str, str]) -> Any:
    """Return a value with names for the folders of the bench file and its data, which lie elsewhere on each machine."""
    if isinstance(value, list):
        return [_without(entry, places) for entry in value]
    if isinstance(value, str):
        for place, name in places.items():
            value = value.replace(place, name)
    return value


@cache
def _checksum(folder: Path) -> str:
    """Return the checksum of a file, or of all files of a folder."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(path for path in [folder, *folder.rglob("*")] if path.is_file()):
        digest.update(str(path.relative_to(folder)).encode())
        with path.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()
