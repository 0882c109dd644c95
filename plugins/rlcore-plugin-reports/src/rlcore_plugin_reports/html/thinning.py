"""Fewer points for a long line, so that it looks the same: every stretch of it keeps its lowest and its highest."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from rlcore_plugin_reports.svg import Line


def finite(line: Line) -> Line:
    """Return a line without the points that are not finite."""
    kept = np.isfinite(line.x) & np.isfinite(line.y) & np.isfinite(line.low) & np.isfinite(line.high)
    return line if kept.all() else _points(line, np.flatnonzero(kept))


def thinned(line: Line, most: int) -> Line:
    """Return a line of at most `most` points.

    The points are cut into stretches of one length. Each keeps its lowest and its highest point, and its band reaches
    from the lowest to the highest of all of its points. The first and the last point of the line stay.

    Args:
        line: finite.
        most: at least 4.
    """
    size = line.x.size
    if size <= most:
        return line
    edges = np.linspace(0, size, (most - 2) // 2 + 1).astype(int)
    starts, low, high = edges[:-1], np.empty(size), np.empty(size)
    stretches = np.repeat(np.arange(starts.size), np.diff(edges))
    low[:] = np.minimum.reduceat(line.low, starts)[stretches]
    high[:] = np.maximum.reduceat(line.high, starts)[stretches]
    kept = {0, size - 1}
    for begin, end in pairwise(edges):
        kept |= {begin + int(line.y[begin:end].argmin()), begin + int(line.y[begin:end].argmax())}
    return _points(replace(line, low=low, high=high), np.array(sorted(kept)))


def _points(line: Line, places: np.ndarray) -> Line:
    return Line(line.name, *(values[places] for values in (line.x, line.y, line.low, line.high)))
