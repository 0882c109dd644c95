"""The curve of each setting of a comparison: the interquartile mean over its seeds, with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from rlcore_plugin_reports.comparison import Setting, value_at
from rlcore_plugin_reports.statistics import Estimate, estimates

if TYPE_CHECKING:
    from rlcore.types import Array

# of a curve: each costs a bootstrap
_POINTS: Final = 100
_REPETITIONS: Final = 2_000


def interval_curve(setting: Setting, begin: int, end: int) -> tuple[Array, list[Estimate]]:
    """Return frames, and the interquartile mean over the runs of a setting at each, with its 95% interval."""
    frames = _grid(setting, begin, end)
    values = [np.asarray([value_at(curve, int(frame)) for curve in setting.curves]) for frame in frames]
    return frames, [estimates(each, repetitions=_REPETITIONS)["iqm"] for each in values]


def _grid(setting: Setting, begin: int, end: int) -> Array:
    """Return the frames that the runs recorded from `begin` to `end`, thinned where there are too many."""
    known = {frame for curve in setting.curves for frame in curve if begin <= frame <= end}
    frames = np.asarray(sorted({begin, *known, end}))
    if frames.size <= _POINTS:
        return frames
    kept: Array = frames[np.linspace(0, frames.size - 1, _POINTS).round().astype(int)]
    return kept
