"""Signals that ask the command to stop; it passes them on to its runs, which save their state."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Final, Self

_ASK: Final = (signal.SIGINT, signal.SIGTERM, *((signal.SIGHUP,) if hasattr(signal, "SIGHUP") else ()))


class Stops:
    """Takes note of signals while it is entered.

    Attributes:
        received: the first signal that came, or None.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._news: list[int] = []
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # only there can they be received
            self._before = {number: signal.signal(number, self._receive) for number in _ASK}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def news(self) -> list[int]:
        """Return what to send to the runs: SIGTERM for each signal since the last call."""
        news, self._news = self._news, []
        return news

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.received = self.received or number
        self._news.append(signal.SIGTERM)
