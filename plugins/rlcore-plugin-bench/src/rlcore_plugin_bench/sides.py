"""The two sides of a comparison, rlcore and a peer: what the queue asks of the run of a row."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from typing import Any, Protocol

from rlcore_plugin_bench import peer_row, rlcore_row
from rlcore_plugin_bench.row import Row


class Side(Protocol):
    """How rows of a side run; the modules `rlcore_row` and `peer_row` are the two."""

    def start(self, row: Row, python: str, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Begin the run of a row, or go on with it where it can; `python` is the interpreter of a peer."""
        ...

    def is_begun(self, row: Row) -> bool:
        """Return whether a run can go on from what it saved."""
        ...

    def is_done(self, row: Row) -> bool:
        """Return whether a run came to its end."""
        ...

    def saved(self, row: Row) -> int:
        """Return how far the latest checkpoint of a run is; 0 without any."""
        ...

    def reached(self, row: Row) -> tuple[int, int]:
        """Return how far a run is, and how far it goes; zeros where it does not say."""
        ...

    def why_failed(self, row: Row, pid: int, printed_before: int) -> str:
        """Return why a run failed, as far as it said so.

        Args:
            row: its row.
            pid: of its process.
            printed_before: bytes in its log when the process was started.
        """
        ...

    def wall_of(self, row: Row) -> float | None:
        """Return the seconds that a run took; None where it did not note them."""
        ...

    def result_of(self, row: Row) -> dict[str, Any]:
        """Return score, frames, clock, seconds and curve of a run that is done.

        Raises:
            ConfigError: it recorded nothing to score it by.
        """
        ...


def side_of(row: Row) -> Side:
    """Return the side of a row."""
    return rlcore_row if row.how.kind == "rlcore" else peer_row
