"""Figures of matplotlib: made without a screen, and saved."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rlcore.errors import ConfigError


@contextmanager
def saved_figure(
    output: Path, rows: int, columns: int, figsize: tuple[float, float], **arguments: Any
) -> Iterator[tuple[Any, Any]]:
    """Yield a figure and its axes, and save it; no window and no figure of the caller's is touched.

    Args:
        output: the picture; its ending says the format.
        rows: of axes.
        columns: of axes.
        figsize: width and height in inches.
        arguments: of `Figure.subplots`.

    Raises:
        ConfigError: no matplotlib, or the picture cannot be written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ConfigError("plots need matplotlib: pip install 'rlcore[reports]'") from None
    # a figure of its own: pyplot would keep it for the process, and take part in what its caller draws
    figure = Figure(figsize=figsize, layout="constrained")
    yield figure, figure.subplots(rows, columns, **arguments)
    try:
        figure.savefig(output, dpi=120)
    except (OSError, ValueError) as error:  # no such folder, or no such format
        raise ConfigError(f"{str(output)!r} cannot be written: {error}") from error


def over_clock(axis: Any, begin: float, end: float, clock: str = "frames") -> None:
    """Make the x axis one of the clock of the runs that ends where the data ends."""
    axis.set_xlabel(clock)
    axis.xaxis.set_major_formatter(lambda value, _: short(value))
    axis.grid(alpha=0.3)
    if begin < end:
        axis.set_xlim(begin, end)


def short(value: float) -> str:
    """Return a number in few characters: 1.5M, 20k."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size <= abs(value) < 1000 * size:
            return f"{value / size:.4g}{letter}"
    return f"{value:.4g}"
