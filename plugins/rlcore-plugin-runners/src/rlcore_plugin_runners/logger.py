"""rlpyt's `logger`: what is recorded goes into the next row of `progress.csv`, what is logged to Python's logging."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping
from typing import Any

from rlcore_plugin_runners.diagnostics import statistics_of

_log = logging.getLogger(__name__)
_recorded: dict[str, Any] = {}
_prefixes: list[str] = []


def log(text: str, **_: Any) -> None:
    """Log a line."""
    _log.info("%s", text)


def record_tabular(key: str, val: Any) -> None:
    """Write a figure into the next row."""
    _recorded["".join([*_prefixes, key])] = val


def record_tabular_misc_stat(key: str, values: Any, placement: str = "back") -> None:
    """Write `Average`, `Std`, `Median`, `Min` and `Max` of numbers into the next row.

    Args:
        key: of the figure.
        values: the numbers; none are `nan`.
        placement: `back` or `front`: whether the name of the statistic comes behind that of the figure.
    """
    columns = statistics_of("", values) if len(values) else dict.fromkeys(statistics_of("", [0]), float("nan"))
    for statistic, value in columns.items():
        record_tabular(key + statistic if placement == "back" else statistic + key, value)


@contextlib.contextmanager
def tabular_prefix(key: str) -> Iterator[None]:
    """Put a prefix before the names of what is recorded inside."""
    _prefixes.append(key)
    try:
        yield
    finally:
        _prefixes.pop()


def taken() -> Mapping[str, Any]:
    """Return what was recorded since the last row, and forget it."""
    figures = dict(_recorded)
    _recorded.clear()
    return figures
