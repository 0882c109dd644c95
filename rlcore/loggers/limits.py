"""How much may wait for a logger, and how long a logger may take."""

from __future__ import annotations

from typing import Final

# calls, and bytes of the images and videos among them
CALLS: Final = 10_000
MEDIA_BYTES: Final = 256 * 2**20
# seconds that the training loop waits for room, once
PATIENCE: Final = 0.05
# seconds for a call that comes while the run goes on
DEADLINE: Final = 5
# seconds for closing loggers of which one sends to a server, which is to confirm the rest
CLOSING: Final = 12
# for building a logger, opening what it writes to and going back to a checkpoint: it may read large files
LONG_DEADLINE: Final = 30
