"""A thread between the training loop and one logger, so that writing never holds up training.

A logger that fails is switched off and reported; the run goes on.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from rlcore.types import Logger

if TYPE_CHECKING:
    from torch import Tensor

log = logging.getLogger(__name__)

_QUEUE: Final = 1000
_FAILURES: Final = 3
_DEADLINE: Final = 10


class LogWriter:
    """Hands rows to one logger in a thread of its own, in order.

    Args:
        name: name of the logger instance.
        logger: where rows go.

    Attributes:
        observer: True; a logger watches a run and does not change it.
        failures: how many calls of the logger raised; after three it is switched off.
    """

    observer: Final = True

    def __init__(self, name: str, logger: Logger) -> None:
        self.name = name
        self.logger = logger
        self.failures = 0
        self._hung = False
        self._queue: queue.Queue[Callable[[], None] | threading.Event | None] = queue.Queue(_QUEUE)
        self._thread = threading.Thread(target=self._run, name=f"log-{name}", daemon=True)
        self._thread.start()

    def write(self, row: Mapping[str, float], step: int) -> None:
        """Hand over one row; waits while the queue is full, and gives a logger up that takes nothing any more."""
        if self.failures >= _FAILURES:
            return
        try:
            self._queue.put(lambda: self.logger.log_metrics(row, step), timeout=_DEADLINE)
        except queue.Full:
            self._give_up()

    def log_video(self, name: str, video: Tensor, step: int, fps: int) -> None:
        """Hand over a video, uint8 `[N, T, C, H, W]`, to a logger that takes videos."""
        log_video = getattr(self.logger, "log_video", None)
        if log_video is None or self.failures >= _FAILURES:
            return
        try:
            self._queue.put(lambda: log_video(name, video, step, fps), timeout=_DEADLINE)
        except queue.Full:
            self._give_up()

    def log_hparams(self, config: Mapping[str, Any]) -> None:
        """Hand over the resolved config."""
        self._queue.put(lambda: self.logger.log_hparams(config))

    def drain(self) -> None:
        """Return when everything handed over is stored; a logger that does not answer in time is switched off."""
        if not self._thread.is_alive() or self.failures >= _FAILURES:
            return
        stored = threading.Event()
        try:
            self._queue.put(self.logger.flush, timeout=_DEADLINE)
            self._queue.put(stored, timeout=_DEADLINE)
            answered = stored.wait(_DEADLINE)
        except queue.Full:
            answered = False
        if not answered:
            self._give_up()

    def close(self) -> None:
        """Close the logger after what was handed over, and end the thread; one that hangs is left behind."""
        if not self._thread.is_alive() or self._hung:
            return
        try:
            self._queue.put(self.logger.close, timeout=_DEADLINE)
            self._queue.put(None, timeout=_DEADLINE)
        except queue.Full:
            pass
        self._thread.join(_DEADLINE)
        if self._thread.is_alive():
            self._give_up()

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
                if isinstance(call, threading.Event):
                    call.set()
                elif self.failures < _FAILURES or call == self.logger.close:
                    call()
            except Exception as error:
                self._failed(error)
            finally:
                self._queue.task_done()
            if self._hung:  # given up in the meantime: what is left in the queue is not written late
                return

    def _give_up(self) -> None:
        self.failures, self._hung = _FAILURES, True
        log.warning("logger %r did not answer for %d s; it is switched off for this run", self.name, _DEADLINE)

    def _failed(self, error: Exception) -> None:
        self.failures += 1
        off = "; it is switched off for this run" if self.failures == _FAILURES else ""
        log.warning("logger %r failed: %s: %s%s", self.name, type(error).__name__, error, off)
