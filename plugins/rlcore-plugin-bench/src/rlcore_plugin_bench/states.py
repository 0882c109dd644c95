"""The state of each row, from its files alone, and how long it will take."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from rlcore.errors import ConfigError
from rlcore.files import in_use
from rlcore_plugin_bench import peer_row
from rlcore_plugin_bench.forecast import seconds_left
from rlcore_plugin_bench.identity import Identity, differences, identity_of
from rlcore_plugin_bench.row import Row
from rlcore_plugin_bench.sides import side_of
from rlcore_plugin_bench.stored_row import StoredRow, read_row

State = Literal["done", "stale", "running", "begun", "open", "no interpreter"]
STATES: Final[tuple[State, ...]] = ("done", "stale", "running", "begun", "open", "no interpreter")


@dataclass(frozen=True)
class RowState:
    """Where a row stands.

    Attributes:
        row: the row.
        state: `stale` is one that is done and depended on something that is otherwise now.
        stored: the finished row; None where there is none.
        differences: why it is stale, a line each.
        now: frames or updates so far, of one that was begun.
        total: frames or updates when it is done; 0 where that is not known.
        seconds: of wall time that are left, as others took; None where nothing is known.
    """

    row: Row
    state: State
    stored: StoredRow | None = None
    differences: Sequence[str] = field(default_factory=list)
    now: int = 0
    total: int = 0
    seconds: float | None = None


def states_of(rows: Iterable[Row], pythons: Mapping[str, str]) -> list[RowState]:
    """Return the states of rows.

    Raises:
        ConfigError: the config of one does not fit, or its command lacks a file; all of them are named.
    """
    rows = list(rows)
    problems: dict[tuple[str, str], str] = {}
    identities: dict[str, Identity] = {}
    for row in rows:
        try:
            identities[str(row)] = identity_of(row, peer_row.interpreter(row, pythons))
        except ConfigError as error:
            problems.setdefault((row.task, row.method), str(error))  # said once, as its seeds have it too
    if problems:
        raise ConfigError("\n  ".join(["rows that cannot be run:", *problems.values()]))
    walls = wall_seconds(rows)
    return [_state(row, identities[str(row)], pythons, walls.get((row.task, row.method))) for row in rows]


def wall_seconds(rows: Iterable[Row]) -> dict[tuple[str, str], float]:
    """Return the median wall time of the finished rows, by task and method."""
    seconds: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        stored = read_row(row.stored)
        took = None if stored is None else stored.wall or stored.seconds
        if took is not None:
            seconds.setdefault((row.task, row.method), []).append(took)
    return {key: statistics.median(values) for key, values in seconds.items()}


def _state(row: Row, identity: Identity, pythons: Mapping[str, str], wall: float | None) -> RowState:
    stored = read_row(row.stored)
    if stored is not None:
        different = list(differences(stored.inputs, identity))
        return RowState(row, "stale" if different else "done", stored, different, seconds=wall if different else 0.0)
    side = side_of(row)
    now, total = side.reached(row)
    left = seconds_left(wall, now, total)
    if in_use(row.folder) or in_use(row.run):
        return RowState(row, "running", None, (), now, total, left)
    if peer_row.interpreter(row, pythons) is None:
        return RowState(row, "no interpreter")
    # the command of a peer begins again from the start, whatever it did before
    begun = side.is_begun(row) or (row.how.kind == "rlcore" and side.is_done(row))
    return RowState(row, "begun" if begun else "open", None, (), now if begun else 0, total, left if begun else wall)
