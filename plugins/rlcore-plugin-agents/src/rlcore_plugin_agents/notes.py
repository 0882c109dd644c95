"""What every exported file says of itself, as JSON: which env it is for, and where its weights come from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from rlcore import __version__
from rlcore.envs import recorded_spec, spec_record
from rlcore.errors import ConfigError, StorageError
from rlcore.run import AgentParts
from rlcore.types import EnvSpec

# the key in the metadata of a file
KEY: Final = "rlcore"
FORMAT: Final = 1


def notes_of(parts: AgentParts, more: Mapping[str, Any] | None = None) -> str:
    """Return what a file says of an agent.

    Raises:
        ConfigError: the spaces of the env cannot be written down.
    """
    env = spec_record(parts.spec)
    if not env:
        raise ConfigError(
            f"env {parts.spec.id!r} has spaces that cannot be written into a file: {parts.spec.observation_space}, "
            f"{parts.spec.action_space}"
        )
    run = parts.saved.config["run"]["name"]
    return json.dumps(
        {"format": FORMAT, "rlcore": __version__, "run": run, "frames": parts.saved.frames, "env": env, **(more or {})}
    )


def read_notes(path: Path, text: str | None) -> dict[str, Any]:
    """Return what a file says of its agent.

    Raises:
        StorageError: it says nothing, or was written by a newer rlcore.
    """
    try:
        notes = json.loads(text or "")
        newer = notes["format"] > FORMAT
        _ = notes["frames"], notes["env"]["id"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise StorageError(
            f"{str(path)!r} was not written by rlcore export: it does not say which env it is for"
        ) from None
    if newer:
        raise StorageError(f"{str(path)!r} has format {notes['format']}, this rlcore reads {FORMAT}; update rlcore")
    return notes  # type: ignore[no-any-return]


def spec_of(path: Path, notes: Mapping[str, Any]) -> EnvSpec:
    """Return the spec of the env.

    Raises:
        StorageError: it cannot be read.
    """
    try:
        return recorded_spec(notes["env"])
    except Exception as error:  # a file that was made to harm raises anything
        raise StorageError(f"{str(path)!r}: what it says of its env cannot be read: {error}") from None
