"""What a run was begun with, noted beside it, and the row that it amounts to when it is done."""

from __future__ import annotations

import json
from typing import Final

from rlcore.errors import ConfigError
from rlcore_plugin_bench.identity import Identity
from rlcore_plugin_bench.machine import machine
from rlcore_plugin_bench.row import COMMAND, Row, portable
from rlcore_plugin_bench.sides import side_of
from rlcore_plugin_bench.stored_row import StoredRow

_IDENTITY: Final = "identity.json"


def note_identity(row: Row, identity: Identity) -> None:
    """Note what the run of a row is begun with."""
    (row.folder / _IDENTITY).write_text(json.dumps({"inputs": identity.inputs, "versions": identity.versions}))


def noted_identity(row: Row) -> Identity | None:
    """Return what the run of a row was begun with; None where nobody noted it."""
    try:
        return Identity(**json.loads((row.folder / _IDENTITY).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def finished(row: Row, watched: float | None) -> StoredRow:
    """Return the row that a finished run amounts to.

    Args:
        row: the row.
        watched: seconds that the run took as the queue saw it, where it saw all of it; what the run noted itself counts
            before.

    Raises:
        ConfigError: the run recorded nothing to score it by.
    """
    side = side_of(row)
    result, noted = side.result_of(row), side.wall_of(row)
    identity = noted_identity(row)
    if identity is None:
        raise ConfigError(f"{row}: nobody noted what its run was begun with; remove {row.folder}, and run it again")
    return StoredRow(
        task=row.task,
        method=row.method,
        seed=row.seed,
        wall=watched if noted is None else noted,
        identity=identity.hash,
        inputs=identity.inputs,
        command=portable(json.loads((row.folder / COMMAND).read_text())),
        versions=identity.versions,
        machine={**machine(), "threads": identity.inputs.get("config.run.threads", 1)},
        **result,
    )
