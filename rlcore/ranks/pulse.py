"""A thread that says that a rank moves."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager


class Pulse(ABC):
    """Runs beside a rank, and knows which process started it."""

    def __init__(self) -> None:
        self._parent = os.getppid()
        self._done = threading.Event()

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Do so during what happens inside."""
        thread = threading.Thread(target=self._beat, name="rlcore pulse", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._done.set()
            thread.join()

    @abstractmethod
    def _beat(self) -> None:
        """Say it until it is done."""
