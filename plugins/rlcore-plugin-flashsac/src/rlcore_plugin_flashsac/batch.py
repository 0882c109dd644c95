"""How batch normalisation is computed: by the statistics of the batch, or by the running ones."""

from __future__ import annotations

from enum import Enum


class Statistics(Enum):
    """The statistics by which a batch norm normalises.

    Attributes:
        RUNNING: the running ones.
        BATCH: those of the batch; the running ones stay.
        MOVED: those of the batch, towards which the running ones move.
    """

    RUNNING = "running"
    BATCH = "batch"
    MOVED = "moved"
