"""How checkpoints of older formats become what this rlcore reads: one step from each format to the next.

A step works on what was read, in memory; on disk nothing changes. A new format brings three things: a step here, a
larger `FORMAT` in `manifest.py`, and a checkpoint of the format before under `tests/checkpoints/`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final


def _unchanged(value: dict[str, Any]) -> dict[str, Any]:
    return value


@dataclass(frozen=True)
class Migration:
    """The step from one format to the next; each function may change what it is given.

    Attributes:
        manifest: takes and returns what `manifest.json` says, without its checksum.
        state: takes and returns what `state.json` says: component name to state.
    """

    manifest: Callable[[dict[str, Any]], dict[str, Any]] = _unchanged
    state: Callable[[dict[str, Any]], dict[str, Any]] = _unchanged


def _unbound(manifest: dict[str, Any]) -> dict[str, Any]:
    """Say that nothing is known of run and config; empty entries are compared with nothing."""
    return {**manifest, "run_id": "", "config": {}, "config_hash": "", "observers": []}


# from which format; none is older than the first
MIGRATIONS: Final[dict[int, Migration]] = {1: Migration(manifest=_unbound)}


def migrated_manifest(manifest: dict[str, Any], to: int) -> dict[str, Any]:
    """Return a manifest as a later format would have written it; `format` still says which one did."""
    written = manifest["format"]
    for version in range(written, to):
        manifest = MIGRATIONS[version].manifest(manifest)
    return {**manifest, "format": written}


def migrated_state(state: dict[str, Any], written: int, to: int) -> dict[str, Any]:
    """Return the states as a later format would have written them.

    Args:
        state: component name to state.
        written: the format that wrote it.
        to: the format to return.
    """
    for version in range(written, to):
        state = MIGRATIONS[version].state(state)
    return state
