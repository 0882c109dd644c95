"""A checkpoint of one back end, written again by another: the same state under the same hashes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rlcore.checkpoints import Backend, CheckpointEntry, Latest, Provenance, read_manifest, remove
from rlcore.errors import ConfigError, StorageError
from rlcore.state import Snapshot

_KEPT: Final = (
    *("run_id", "config", "config_hash", "owners", "observers", "versions", "domain"),
    *("exact", "inexact", "sizes", "digests", "digest", "env", "data", "metadata"),
)
# more checkpoints than any folder holds, so that converting removes none
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


def convert(entry: CheckpointEntry, source: Backend, target: Backend) -> Path:
    """Write a checkpoint again by another back end, beside itself; it stays where it is.

    Args:
        entry: the checkpoint.
        source: the back end that wrote it.
        target: the back end that writes it again.

    Returns:
        The folder of the new checkpoint. Of the two it counts as the newer.

    Raises:
        ConfigError: both back ends are the same.
        StorageError: the checkpoint is damaged, or the new one cannot be written.
    """
    if source.name == target.name:
        raise ConfigError(f"checkpoint {entry.path} is of back end {target.name!r} already")
    folder = entry.path.parent
    old, new = (backend.store(folder, (Latest(_ALL),)) for backend in (source, target))
    path = new.save(old.snapshot(entry), KeptProvenance(manifest=entry.manifest))
    converted = CheckpointEntry(path, entry.frames, read_manifest(path))
    try:
        _check_digests(new.snapshot(converted), entry.manifest)
    except StorageError:
        remove(converted)
        raise
    return path


def _check_digests(snapshot: Snapshot, manifest: Mapping[str, Any]) -> None:
    digests, expected = snapshot.digests(), manifest["digests"]
    changed = [name for name in {*digests, *expected} if digests.get(name) != expected.get(name)]
    if changed:
        raise StorageError(f"{', '.join(sorted(changed))} would come back as something else; nothing is converted")
