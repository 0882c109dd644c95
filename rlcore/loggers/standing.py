"""Whether a logger still writes: its failures are counted, and after too many of them it is switched off."""

from __future__ import annotations

import errno
import logging
from typing import Final, Literal, TypeAlias

from rlcore.errors import describe
from rlcore.loggers import limits

log = logging.getLogger(__name__)

# what a call does that the disk may refuse and take later: write something, or store what was written
Act: TypeAlias = Literal["write", "flush"]

_MOST_FAILURES: Final = 3
# what a disk says that may take more later
_PASSING: Final = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN}
    | {errno.EBUSY, errno.ETIMEDOUT, errno.ESTALE}
)


class Standing:
    """The failures of one logger, and what follows from them.

    Args:
        name: of the logger instance, for messages.

    Attributes:
        failures: how many calls of the logger raised, also those after which it is tried again.
        hung: whether it did not answer, and is not waited for again.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.failures = 0
        self.hung = False
        self._strikes = 0
        self._kept_waiting = 0.0
        # what the disk refused last; None while it takes everything
        self._refused: Act | None = None

    @property
    def off(self) -> bool:
        """Whether nothing more is written."""
        return self._strikes >= _MOST_FAILURES

    def failed(self, error: BaseException, act: Act | None = None) -> None:
        """Count a failure; that of an act which the disk may take later does not switch the logger off."""
        self.failures += 1
        if act is not None and isinstance(error, OSError) and error.errno in _PASSING:
            if self._refused is None:
                log.error("logger %r failed: %s; it is tried again with what comes", self.name, describe(error))
            self._refused = self._refused or act
            return
        self._strikes += 1
        off = "; it is switched off for this run" if self._strikes == _MOST_FAILURES else ""
        log.error("logger %r failed: %s%s", self.name, describe(error), off)

    def succeeded(self, act: Act) -> None:
        """Take in that the logger could do what the disk may have refused before."""
        if act == self._refused:
            self._refused = None
            log.warning("logger %r writes again", self.name)

    def switch_off(self, error: BaseException) -> None:
        """Write nothing more, because of `error`."""
        self._strikes = _MOST_FAILURES - 1
        self.failures = max(self.failures, _MOST_FAILURES - 1)
        self.failed(error)

    def give_up(self, why: str) -> None:
        """Write nothing more and wait for nothing, since the logger hangs."""
        if not self.hung:
            self._strikes = self.failures = _MOST_FAILURES
            self.hung = True
            log.error("logger %r %s; it is switched off for this run", self.name, why)

    def held_others_up(self, seconds: float) -> None:
        """Take in that a call of the logger kept all other threads from running; give it up when that adds up."""
        self._kept_waiting += seconds
        if self._kept_waiting > limits.DEADLINE:
            self.give_up(f"kept all other threads from running for {self._kept_waiting:.0f} s")
