"""A thread between the training loop and one logger, so that writing never holds up training.

A logger that fails is switched off and reported; the run goes on.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from rlcore.types import Logger

log = logging.getLogger(__name__)

_QUEUE: Final = 1000
_FAILURES: Final = 3


class LogWriter:
    """Hands rows to one logger in a thread of its own, in order.

    Args:
        name: name of the logger instance.
        logger: where rows go.

    Attributes:
        failures: how many calls of the logger raised; after three it is switched off.
    """

    def __init__(self, name: str, logger: Logger) -> None:
        self.name = name
        self.logger = logger
        self.failures = 0
        self._queue: queue.Queue[Callable[[], None] | None] = queue.Queue(_QUEUE)
        self._thread = threading.Thread(target=self._run, name=f"log-{name}", daemon=True)
        self._thread.start()

    def write(self, row: Mapping[str, float], step: int) -> None:
        """Hand over one row."""
        self._queue.put(lambda: self.logger.log_metrics(row, step))

    def log_hparams(self, config: Mapping[str, Any]) -> None:
        """Hand over the resolved config."""
        self._queue.put(lambda: self.logger.log_hparams(config))

    def drain(self) -> None:
        """Return when everything handed over is stored."""
        if self._thread.is_alive():
            self._queue.put(self.logger.flush)
            self._queue.join()

    def close(self) -> None:
        """Drain, close the logger and end the thread."""
        if self._thread.is_alive():
            self._queue.put(self.logger.close)
            self._queue.put(None)
            self._thread.join()

    def state_dict(self) -> Mapping[str, Any]:
        """Return the logger's position, after draining; None for one that failed, so that it never stops a save."""
        self.drain()
        position = None
        try:
            if self.failures < _FAILURES:
                position = self.logger.state_dict()
        except Exception as error:
            self._failed(error)
        return {"position": position}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the logger's position, where it is known."""
        if state["position"] is not None:
            self.logger.load_state_dict(state["position"])

    def _run(self) -> None:
        while True:
            call = self._queue.get()
            try:
                if call is None:
                    return
                if self.failures < _FAILURES or call == self.logger.close:
                    call()
            except Exception as error:
                self._failed(error)
            finally:
                self._queue.task_done()

    def _failed(self, error: Exception) -> None:
        self.failures += 1
        off = "; it is switched off for this run" if self.failures == _FAILURES else ""
        log.warning("logger %r failed: %s: %s%s", self.name, type(error).__name__, error, off)
