"""Migrations of checkpoints: one step from each format to the next.

A step changes a manifest or a state in memory; the files on disk stay. A new format brings three things: a step here, a
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
    """Step from one format to the next; its functions may change their argument.

    Attributes:
        manifest: takes and returns the content of `manifest.json`, without its checksum.
        state: takes and returns the content of `state.json`: component name to state.
    """

    manifest: Callable[[dict[str, Any]], dict[str, Any]] = _unchanged
    state: Callable[[dict[str, Any]], dict[str, Any]] = _unchanged


def _unbound(manifest: dict[str, Any]) -> dict[str, Any]:
    """Add empty entries for run and config, which format 1 did not record; a resume compares no empty entry."""
    return {**manifest, "run_id": "", "config": {}, "config_hash": "", "observers": []}


# by the format that each step begins at; format 1 is the first
MIGRATIONS: Final[dict[int, Migration]] = {1: Migration(manifest=_unbound)}


def migrated_manifest(manifest: dict[str, Any], to: int) -> dict[str, Any]:
    """Return a manifest in a later format; its entry `format` stays, as `state.json` is migrated from there too."""
    written = manifest["format"]
    for version in range(written, to):
        manifest = MIGRATIONS[version].manifest(manifest)
    return {**manifest, "format": written}


def migrated_state(state: dict[str, Any], written: int, to: int) -> dict[str, Any]:
    """Return the states of a checkpoint in a later format.

    Args:
        state: component name to state.
        written: the format of the file.
        to: the format to return.
    """
    for version in range(written, to):
        state = MIGRATIONS[version].state(state)
    return state
