"""A line for each run on the terminal, written over in its place; elsewhere a line for each change."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Final, TextIO

from rlcore.run_folder import read_status
from rlcore_plugin_reports.seeds.child import Child
from rlcore_plugin_reports.terminal import printable

_UP: Final = "\x1b[{}F"
_CLEAR: Final = "\x1b[K"
_SIGNALLED: Final = 128


class Display:
    """Shows the runs.

    Args:
        children: in the order of their lines.
        target: where on its clock a run is done.
        stream: where to.
        clock: which that is.
    """

    def __init__(self, children: Sequence[Child], target: int, stream: TextIO, clock: str = "frames") -> None:
        self._children = children
        self._target = target
        self._clock = clock
        self._stream = stream
        self._states: dict[int, str] = {}
        self._drawn: list[str] = []

    def show(self) -> None:
        """Show what changed."""
        size = shutil.get_terminal_size()
        if self._stream.isatty() and len(self._children) < size.lines:
            self._draw([self._line(child)[: size.columns - 1] for child in self._children])
            return
        for child in self._children:
            state = state_of(child)
            if state != self._states.get(child.seed.number, "waiting"):
                self._stream.write(self._line(child) + "\n")
            self._states[child.seed.number] = state
        self._stream.flush()

    def _draw(self, lines: list[str]) -> None:
        if lines == self._drawn:
            return
        up = _UP.format(len(self._drawn)) if self._drawn else ""
        self._stream.write(up + "".join(f"{line}{_CLEAR}\n" for line in lines))
        self._stream.flush()
        self._drawn = lines

    def _line(self, child: Child) -> str:
        width = max(len(str(each.seed.number)) for each in self._children)
        state = state_of(child)
        parts = [f"seed {child.seed.number:>{width}}  {state:<9}"]
        if state != "waiting":
            parts.append(f"{child.frames:>{len(f'{self._target:,}')},} of {self._target:,} {self._clock}")
        if child.score is not None:
            parts.append(f"evaluation {child.score:,.1f}")
        if state == "failed":
            parts.append(why_failed(child))
        return printable("  ".join(parts))


def state_of(child: Child) -> str:
    """Return where a run stands, in a word."""
    if child.running:
        return "running"
    if child.code is None:
        return "done" if child.seed.finished else "waiting"
    if child.code == 0:
        return "stopped" if read_status(child.seed.folder).get("state") == "stopped-resumable" else "done"
    return "stopped" if was_stopped(child) else "failed"


def was_stopped(child: Child) -> bool:
    """Return whether a signal ended a run, with its state saved or before there was any."""
    return child.code is not None and (child.code > _SIGNALLED or child.code < 0) and child.asked


def why_failed(child: Child) -> str:
    """Return the best word there is on why a run failed."""
    return child.last_line() or child.how_it_ended()
