"""The end of a run by the clock, at a place from which it can be continued."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

from rlcore.hooks.specs import hookimpl

if TYPE_CHECKING:
    from rlcore.types.trainer import Trainer

log = logging.getLogger(__name__)


class TimeLimit:
    """Asks the run to stop after the first iteration that ends when the time is over.

    Args:
        deadline: of `time.monotonic()`.
        limit: the time, for messages.

    Attributes:
        observer: True; a run that is continued has the bits of one that was not stopped.
        internal: True; it belongs to the command, and no figures of hooks speak of it.
    """

    observer: Final = True
    internal: Final = True

    def __init__(self, deadline: float, limit: str) -> None:
        self._deadline = deadline
        self._limit = limit

    @hookimpl
    def post_steps_log(self, trainer: Trainer) -> None:
        """Look at the clock."""
        if time.monotonic() >= self._deadline:
            log.info("--max-time %s is over", self._limit)
            trainer.request_stop(f"--max-time {self._limit}")
