"""Limits of loggers: of calls that wait, and of the time of a call."""

from __future__ import annotations

from typing import Final

# calls, and bytes of the images and videos among them
CALLS: Final = 10_000
MEDIA_BYTES: Final = 256 * 2**20
# seconds that the training loop waits for room, once
PATIENCE: Final = 0.05
# seconds for a call that comes while the run goes on
DEADLINE: Final = 5
# seconds for closing the loggers where one sends to a server, which must confirm the rest
CLOSING: Final = 12
# seconds for building a logger, opening its files and going back to a checkpoint, as it may read large files
LONG_DEADLINE: Final = 30
