"""What `rlcore bench list` prints: the states of rows, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rlcore_plugin_bench.answers import ListedRow
from rlcore_plugin_bench.states import STATES, RowState
from rlcore_plugin_bench.texts import duration


def listed_rows(states: Sequence[RowState]) -> list[ListedRow]:
    """Return an entry per row."""
    return [
        ListedRow(
            task=state.row.task,
            method=state.row.method,
            seed=state.row.seed,
            state=state.state,
            score=None if state.stored is None else state.stored.score,
            differences=list(state.differences),
            now=state.now,
            total=state.total,
            seconds_left=None if state.seconds is None else round(state.seconds),
            file=str(state.row.stored),
        )
        for state in states
    ]


def listed(states: Sequence[RowState]) -> str:
    """Return a line per method of a task, and how much is left in all."""
    by_method = sorted(states, key=lambda state: _order(states, state))
    groups = [list(group) for _, group in groupby(by_method, key=lambda state: (state.row.task, state.row.method))]
    names = [f"{group[0].row.task}/{group[0].row.method}" for group in groups]
    width = max(map(len, names), default=0)
    lines = []
    for name, group in zip(names, groups, strict=True):
        lines.append(f"{name:<{width}}  {'; '.join(_parts(group))}")
        lines += [f"    {text}" for text in dict.fromkeys(text for state in group for text in state.differences)]
    return "\n".join([*lines, _total(states)])


def _order(states: Sequence[RowState], state: RowState) -> tuple[int, int, int]:
    tasks = list(dict.fromkeys(each.row.task for each in states))
    methods = list(dict.fromkeys(each.row.method for each in states))
    return tasks.index(state.row.task), methods.index(state.row.method), state.row.seed


def _parts(group: Sequence[RowState]) -> Iterator[str]:
    for name in STATES:
        of_state = [state for state in group if state.state == name]
        if of_state:
            yield f"{name} {', '.join(map(_shown, of_state))}{_left(of_state)}"


def _shown(state: RowState) -> str:
    share = f" ({state.now / state.total:.0%})" if state.now and state.total else ""
    return f"{state.row.seed}{share}"


def _left(states: Sequence[RowState]) -> str:
    left = [state.seconds for state in states if state.seconds]
    return f", about {duration(sum(left))}" if left and len(left) == len(states) else ""


def _total(states: Sequence[RowState]) -> str:
    counts = {name: sum(state.state == name for state in states) for name in STATES}
    told = ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "no rows"
    waiting = [state for state in states if state.state in ("running", "begun", "open")]
    unknown = sum(state.seconds is None for state in waiting)
    left = sum(state.seconds or 0.0 for state in waiting)
    if not waiting or unknown == len(waiting):
        return told
    besides = f", and {unknown} of which none is finished yet" if unknown else ""
    return f"{told}; left: about {duration(left)} one after the other{besides}"
