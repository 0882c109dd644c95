"""The room for the calls that wait for a logger: what finds none is left out and counted."""

from __future__ import annotations

import threading

from rlcore.loggers import limits


class Room:
    """Room for 10,000 calls and 256 MiB of images and videos.

    Attributes:
        left_out: how many calls found no room, or came after the logger was switched off.
        behind: whether the last call found none; then the next ones are not waited for.
    """

    def __init__(self) -> None:
        self.left_out = 0
        self.behind = False
        self._calls = self._bytes = 0
        self._given_back = threading.Condition()

    def take(self, size: int) -> bool:
        """Take room for a call, waiting a moment for it; return whether there was any.

        Args:
            size: bytes of the image or video; 0 for other calls.
        """
        with self._given_back:
            if not self._given_back.wait_for(lambda: self._fits(size), 0 if self.behind else limits.PATIENCE):
                return False
            self._calls += 1
            self._bytes += size
        self.behind = False
        return True

    def give_back(self, size: int) -> None:
        """Give back the room of a call that was made."""
        with self._given_back:
            self._calls -= 1
            self._bytes -= size
            self._given_back.notify()

    def wait(self) -> None:
        """Wait a moment for any room to be given back."""
        with self._given_back:
            self._given_back.wait(limits.PATIENCE)

    def _fits(self, size: int) -> bool:
        return self._calls < limits.CALLS and (not size or self._bytes + size <= limits.MEDIA_BYTES)
