"""A checkpoint of one back end, written again by another: the same state under the same hashes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rlcore.checkpoints.manifest import CheckpointEntry, read_manifest
from rlcore.checkpoints.provenance import Provenance
from rlcore.checkpoints.retention import remove
from rlcore.checkpoints.store import Store
from rlcore.config.sections import find_component
from rlcore.errors import ConfigError, StorageError
from rlcore.plugins.host import PluginHost
from rlcore.state.snapshot import Snapshot
from rlcore.types.context import Context

_KEPT: Final = (
    *("run_id", "config", "config_hash", "owners", "observers", "versions", "domain"),
    *("exact", "inexact", "sizes", "digests", "digest", "metadata"),
)
_ALL: Final = 2**31


@dataclass(frozen=True)
class KeptProvenance(Provenance):
    """What the manifest of another checkpoint says about the same state."""

    manifest: Mapping[str, Any] = field(default_factory=dict)

    def in_manifest(self, snapshot: Snapshot) -> dict[str, Any]:
        """Return the entries of that manifest.

        Raises:
            StorageError: the state has other hashes.
        """
        _check_digests(snapshot, self.manifest)
        return {key: self.manifest[key] for key in _KEPT if key in self.manifest}


def convert(entry: CheckpointEntry, target: str) -> Path:
    """Write a checkpoint again by another back end, beside itself; it stays where it is.

    Args:
        entry: the checkpoint.
        target: name of the back end.

    Returns:
        The folder of the new checkpoint. Of the two it counts as the newer.

    Raises:
        ConfigError: there is no such back end here, or it is the one that wrote the checkpoint.
        StorageError: the checkpoint is damaged, or the new one cannot be written.
    """
    source = entry.manifest["backend"]
    if source == target:
        raise ConfigError(f"checkpoint {entry.path} is of back end {target!r} already")
    folder = entry.path.parent
    old, new = (_store(folder, name) for name in (source, target))
    path = new.save(old.snapshot(entry), KeptProvenance(manifest=entry.manifest))
    converted = CheckpointEntry(path, entry.frames, read_manifest(path))
    try:
        _check_digests(new.snapshot(converted), entry.manifest)
    except StorageError:
        remove(converted)
        raise
    return path


def _store(folder: Path, name: str) -> Store:
    """Return the checkpoints of a folder for a back end with its defaults, without retention.

    Raises:
        ConfigError: it is not installed; says how to install it.
    """
    provided, config = find_component(PluginHost(), "checkpointer", name, {})
    backend = provided.build(config, Context.alone("convert").for_component("checkpointer", name))
    return Store(folder, backend, provided.component.name, keep_last=_ALL)


def _check_digests(snapshot: Snapshot, manifest: Mapping[str, Any]) -> None:
    found, wanted = snapshot.digests(), manifest["digests"]
    other = [name for name in {*found, *wanted} if found.get(name) != wanted.get(name)]
    if other:
        raise StorageError(f"{', '.join(sorted(other))} would come back as something else; nothing is converted")
