"""The standing of a logger: counts its failures, and switches it off after too many."""

from __future__ import annotations

import errno
import logging
from typing import Final, Literal, TypeAlias

from rlcore.errors import describe
from rlcore.loggers import limits

log = logging.getLogger(__name__)

# calls that a disk may refuse and take later: a write, or a flush of earlier writes
Act: TypeAlias = Literal["write", "flush"]

_MOST_FAILURES: Final = 3
# errors of a disk that may pass
_PASSING: Final = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN}
    | {errno.EBUSY, errno.ETIMEDOUT, errno.ESTALE}
)


class Standing:
    """Counts the failures of a logger, and decides whether it is switched off.

    Args:
        name: of the logger instance, for messages.

    Attributes:
        failures: number of calls that raised, with those that are tried again.
        hung: whether a call did not return in time, so that nobody waits for the logger again.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.failures = 0
        self.hung = False
        self._strikes = 0
        self._kept_waiting = 0.0
        # the act that the disk refuses; None while it takes everything
        self._refused: Act | None = None

    @property
    def off(self) -> bool:
        """Whether the logger is switched off."""
        return self._strikes >= _MOST_FAILURES

    def failed(self, error: BaseException, act: Act | None = None) -> None:
        """Count a failure; one that may pass, as of a full disk, does not switch the logger off."""
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
        """Note that an act succeeded, which the disk may have refused before."""
        if act == self._refused:
            self._refused = None
            log.warning("logger %r writes again", self.name)

    def switch_off(self, error: BaseException) -> None:
        """Switch the logger off because of an error."""
        self._strikes = _MOST_FAILURES - 1
        self.failures = max(self.failures, _MOST_FAILURES - 1)
        self.failed(error)

    def give_up(self, why: str) -> None:
        """Switch off a logger that hangs, and never wait for it again."""
        if not self.hung:
            self._strikes = self.failures = _MOST_FAILURES
            self.hung = True
            log.error("logger %r %s; it is switched off for this run", self.name, why)

    def held_others_up(self, seconds: float) -> None:
        """Add the seconds for which a call stopped all other threads; give the logger up when they are too many."""
        self._kept_waiting += seconds
        if self._kept_waiting > limits.DEADLINE:
            self.give_up(f"kept all other threads from running for {self._kept_waiting:.0f} s")
