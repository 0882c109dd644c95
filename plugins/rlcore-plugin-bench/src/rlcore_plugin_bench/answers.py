"""What the actions of `rlcore bench` answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ListedRow:
    """A row: a task, a method and a seed.

    Attributes:
        task: its name.
        method: its name.
        seed: of the row.
        state: `done`, `stale`, `running`, `begun`, `open` or `no interpreter`.
        score: what it reached; null where it is not done.
        differences: what is otherwise now than when it was done.
        now: how far it is, in frames or updates.
        total: how far it goes; 0 where that is not known.
        seconds_left: how long it will take; null where that is not known.
        file: in which it is stored.
    """

    task: str
    method: str
    seed: int
    state: str
    score: float | None
    differences: list[str]
    now: int
    total: int
    seconds_left: int | None
    file: str


@dataclass(frozen=True)
class Rows:
    """The rows of bench files.

    Attributes:
        rows: in the order of the files.
    """

    rows: list[ListedRow]


@dataclass(frozen=True)
class Ran:
    """What became of the rows that were to be run.

    Attributes:
        done: finished and stored.
        failed: with the reason.
        late: not begun or stopped, as they would not have finished in time, with the reason.
        elsewhere: that another queue has.
        again: the command that goes on, where a signal stopped it; else null.
    """

    done: list[str]
    failed: dict[str, str]
    late: dict[str, str]
    elsewhere: list[str]
    again: str | None


@dataclass(frozen=True)
class BenchTable:
    """The figures of what is done.

    Attributes:
        tasks: `task`, `title`, `threshold`, and `methods` with scores, means, medians, IQM and their intervals.
        file: the page; null without `--output`.
    """

    tasks: list[dict[str, Any]]
    file: str | None
