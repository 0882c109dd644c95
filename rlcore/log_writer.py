"""A thread between the training loop and one logger, so that writing never holds up training.

A logger that fails or hangs is switched off and reported, one that falls behind leaves rows out and they are counted;
the run goes on as it would without a logger.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from rlcore.errors import ConfigError, RlcoreError
from rlcore.logger_base import LoggerBase
from rlcore.types import Logger

log = logging.getLogger(__name__)

_QUEUE: Final = 10_000
_MEDIA_BYTES: Final = 256 * 2**20
_FAILURES: Final = 3
_PATIENCE: Final = 0.05
_DEADLINE: Final = 5


class _Entry(NamedTuple):
    """A call that waits; `size` is its share of the room in bytes, None for a call that takes none."""

    call: Callable[[], object]
    size: int | None = None
    always: bool = False


class LogWriter:
    """Hands calls to one logger in a thread of its own, in order.

    At most 10,000 calls and 256 MiB of images and videos wait. When more come in, the training loop waits 50 ms once;
    after that they are left out until there is room again.

    Args:
        name: name of the logger instance.
        logger: where rows go.
        required: whether a failure at the start ends the run.

    Attributes:
        observer: True; a logger watches a run and does not change it.
        failures: how many calls of the logger raised; after three it is switched off.
        left_out: how many calls found no room, or came after the logger was switched off.
    """

    observer: Final = True

    def __init__(self, name: str, logger: Logger, required: bool = False) -> None:
        self.name = name
        self.logger = logger
        self.required = required
        self.failures = 0
        self.left_out = 0
        self._hung = False
        self._behind = False
        self._closing = False
        self._rows = self._bytes = 0
        self._busy_since: float | None = None
        self._room = threading.Condition()
        self._queue: queue.SimpleQueue[_Entry | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"log-{name}", daemon=True)
        self._thread.start()

    def start(self) -> None:
        """Open the back end, in the logger's thread; at once for a required one.

        Raises:
            ConfigError: the logger is required and its back end cannot be opened.
        """
        if not self.required:
            self._hand_over(self.logger.start)
            return
        try:
            self.logger.start(wait=True)
        except Exception as error:
            raise _refused(self.name, error) from error

    def write(self, row: Mapping[str, float], step: int) -> None:
        """Hand over one row."""
        row = dict(row)
        self._hand_over(lambda: self.logger.log_metrics(row, step))

    def show(self, method: str, *arguments: Any, size: int = 0) -> None:
        """Hand over a call of `log_video`, `log_image`, `log_histogram` or `log_text`; `size` in bytes."""
        self._hand_over(lambda: getattr(self.logger, method)(*arguments), size)

    def log_hparams(self, config: Mapping[str, Any]) -> None:
        """Hand over the resolved config."""
        self._hand_over(lambda: self.logger.log_hparams(config))

    @property
    def unsent(self) -> int:
        """How many records wait on disk for a server; 0 for a logger without one."""
        return int(getattr(self.logger, "unsent", 0))

    def drain(self) -> None:
        """Return when everything handed over is stored; a logger that does not answer in time is switched off."""
        drain_all([self])

    def close(self) -> None:
        """Close the logger after what was handed over, and end the thread; one that hangs is left behind."""
        close_all([self])

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
        """Set the logger's position, where it is known; a logger that cannot go back to it is switched off.

        Raises:
            ConfigError: the logger is required and cannot.
        """
        if state["position"] is not None:
            self._set_back(lambda: self.logger.load_state_dict(state["position"]))

    def branch(self) -> None:
        """Tell the logger that what comes differs from what it wrote after its position; as `load_state_dict`."""
        if self.failures < _FAILURES:
            self._set_back(self.logger.branch)

    def switch_off(self, error: BaseException) -> None:
        """Write nothing more, because of `error`."""
        self.failures = _FAILURES - 1
        self._failed(error)

    def ask_to_drain(self) -> threading.Event | None:
        """Queue a flush, and return what is set when it is done; None when there is nothing to wait for."""
        if not self._thread.is_alive() or self.failures >= _FAILURES or self._closing:
            return None
        stored = threading.Event()
        self._queue.put(_Entry(self.logger.flush))
        self._queue.put(_Entry(stored.set, always=True))
        return stored

    def ask_to_close(self) -> bool:
        """Queue the end, and return whether there is something to wait for."""
        if not self._thread.is_alive() or self._hung:
            return False
        if not self._closing:
            self._closing = True
            self._queue.put(_Entry(self.logger.close, always=True))
            self._queue.put(None)
        return True

    def wait_for(self, stored: threading.Event | None, deadline: float) -> None:
        """Wait for a flush, or without one for the end of the thread; switch a logger off that is not done by then."""
        left = max(0.0, deadline - time.monotonic())
        if stored is not None:
            done = stored.wait(left)
        else:
            self._thread.join(left)
            done = not self._thread.is_alive()
        if not done:
            self._give_up()

    def _set_back(self, call: Callable[[], object]) -> None:
        try:
            call()
        except Exception as error:
            if self.required:
                raise _refused(self.name, error) from error
            self.switch_off(error)

    def _hand_over(self, call: Callable[[], object], size: int = 0) -> None:
        """Queue a call if there is room, or is soon."""
        if self.failures >= _FAILURES or self._closing:
            self.left_out += 1
            return
        with self._room:
            if not self._room.wait_for(lambda: self._has_room(size), 0 if self._behind else _PATIENCE):
                self._leave_out()
                return
            self._behind = False
            self._rows += 1
            self._bytes += size
        self._queue.put(_Entry(call, size))

    def _has_room(self, size: int) -> bool:
        return self._rows < _QUEUE and (not size or self._bytes + size <= _MEDIA_BYTES)

    def _leave_out(self) -> None:
        self.left_out += 1
        since = self._busy_since
        if since is not None and time.monotonic() - since > _DEADLINE:
            self._give_up()
        elif not self._behind:
            log.warning("logger %r falls behind; what finds no room is left out and counted", self.name)
        self._behind = True

    def _run(self) -> None:
        while (entry := self._queue.get()) is not None:
            self._busy_since = time.monotonic()
            try:
                if entry.always or self.failures < _FAILURES:
                    entry.call()
                elif entry.size is not None:
                    self.left_out += 1
            except BaseException as error:  # also an exit: it ends neither the thread nor the run
                self._failed(error)
            self._busy_since = None
            if entry.size is not None:
                with self._room:
                    self._rows -= 1
                    self._bytes -= entry.size
                    self._room.notify()
            if self._hung:  # given up in the meantime: what is left in the queue is not written late
                return

    def _give_up(self) -> None:
        if not self._hung:
            self.failures, self._hung = _FAILURES, True
            log.warning("logger %r did not answer for %d s; it is switched off for this run", self.name, _DEADLINE)

    def _failed(self, error: BaseException) -> None:
        self.failures += 1
        off = "; it is switched off for this run" if self.failures == _FAILURES else ""
        log.warning("logger %r failed: %s: %s%s", self.name, type(error).__name__, error, off)


def open_writer(name: str, build: Callable[[], Logger], required: bool) -> LogWriter:
    """Build a logger and start its thread; one that cannot be built is switched off and reported, unless required.

    Raises:
        RlcoreError: the config is wrong, or the logger is required and cannot be built.
    """
    try:
        return LogWriter(name, build(), required)
    except RlcoreError:
        raise
    except Exception as error:
        if required:
            raise _refused(name, error) from error
        writer = LogWriter(name, LoggerBase())
        writer.switch_off(error)
        return writer


def drain_all(writers: Iterable[LogWriter]) -> None:
    """Return when all have stored what they were given; together they are waited for no longer than one."""
    deadline = time.monotonic() + _DEADLINE
    for writer, stored in [(writer, writer.ask_to_drain()) for writer in writers]:
        if stored is not None:
            writer.wait_for(stored, deadline)


def close_all(writers: Iterable[LogWriter]) -> None:
    """Close all; together they are waited for no longer than one."""
    deadline = time.monotonic() + _DEADLINE
    for writer in [writer for writer in writers if writer.ask_to_close()]:
        writer.wait_for(None, deadline)


def _refused(name: str, error: Exception) -> ConfigError:
    return ConfigError(
        f"logger {name!r} says required = true and cannot start: {type(error).__name__}: {error}; mend that, or leave "
        "`required` out to train without it"
    )
