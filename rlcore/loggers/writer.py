"""A thread between the training loop and one logger, so that writing never holds up training.

A logger that fails or hangs is switched off and reported, one that falls behind leaves rows out and they are counted;
the run goes on as it would without a logger.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from rlcore.errors import ConfigError, RlcoreError, describe
from rlcore.loggers.base import LoggerBase
from rlcore.process.patience import Patience
from rlcore.types import Logger

log = logging.getLogger(__name__)

_QUEUE: Final = 10_000
_MEDIA_BYTES: Final = 256 * 2**20
_FAILURES: Final = 3
_PATIENCE: Final = 0.05
_DEADLINE: Final = 5
# for building a logger, opening what it writes to and going back to a checkpoint: it may read large files
_LONG_DEADLINE: Final = 30
# what a disk says that may take more later
_PASSING: Final = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN}
    | {errno.EBUSY, errno.ETIMEDOUT, errno.ESTALE}
)


class _Entry(NamedTuple):
    """A call that waits; `size` is its share of the room in bytes, None for a call that takes none."""

    call: Callable[[], object]
    size: int | None = None
    always: bool = False


class _Answer:
    """What a call gave in the thread of the logger, or raised there."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.done = threading.Event()
        self.value: Any = None
        self.error: BaseException | None = None
        self._call = call

    def make(self) -> None:
        """Make the call."""
        try:
            self.value = self._call()
        except BaseException as error:  # also an exit: it ends neither the thread nor the run
            self.error = error
        self.done.set()


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
        failures: how many calls of the logger raised. After three it is switched off; those that a full disk caused
            count here, but it is tried again after them.
        left_out: how many calls found no room, or came after the logger was switched off.
        unsent: how many records waited on disk for a server when that was last asked; 0 for a logger without one.
        differences: how much a resume found to be other than the checkpoint says.
        files: what is to outlive a power cut together with the checkpoint whose state was taken last.
    """

    observer: Final = True

    def __init__(self, name: str, logger: Logger, required: bool = False) -> None:
        self.name = name
        self.logger = logger
        self.required = required
        self.failures = 0
        self.left_out = 0
        self.unsent = 0
        self.differences = 0
        self.files: list[Path] = []
        self._strikes = 0
        self._kept_waiting = 0.0
        # whether the disk refused a row, or refused to store what was written; None while it takes everything
        self._refused: Literal["row", "flush"] | None = None
        self._cannot_count = False
        self._hung = False
        self._behind = False
        self._closing = False
        self._rows = self._bytes = 0
        self._busy_since: float | None = None
        self._last_call = (0.0, 0.0)
        self._room = threading.Condition()
        self._queue: queue.SimpleQueue[_Entry | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"log-{name}", daemon=True)
        self._thread.start()

    @property
    def off(self) -> bool:
        """Whether nothing more is written."""
        return self._strikes >= _FAILURES

    def start(self) -> None:
        """Open what the logger writes to; of a required one, return when it is open.

        Raises:
            ConfigError: the logger is required and cannot be opened.
        """
        if not self.required:
            self._hand_over(self.logger.start)
            return
        error = self._ask(lambda: self.logger.start(wait=True)).error
        if error is not None:
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

    def drain(self) -> None:
        """Return when everything handed over is stored; a logger that does not answer in time is switched off."""
        drain_all([self])

    def close(self) -> None:
        """Close the logger after what was handed over, and end the thread; one that hangs is left behind."""
        close_all([self])

    def state_dict(self) -> Mapping[str, Any]:
        """Return the logger's position, after draining; None for one that failed, so that it never stops a save."""
        if self.off:
            return {"position": None}
        if self._thread.is_alive():
            self._queue.put(_Entry(self.logger.flush))
        answer = self._ask(self._position, _DEADLINE)
        if answer.error is not None and not self._hung:
            self._failed(answer.error, "flush")
        return {"position": answer.value}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the logger's position, where it is known; a logger that cannot go back to it is switched off.

        Raises:
            ConfigError: the logger is required and cannot.
        """
        if state["position"] is not None:
            self._set_back(lambda: self.logger.load_state_dict(state["position"]))

    def begin_anew(self) -> None:
        """Tell the logger that the run begins again, from nothing; as `load_state_dict`."""
        self._set_back(getattr(self.logger, "begin_anew", lambda: None))

    def branch(self) -> None:
        """Tell the logger that what comes differs from what it wrote after its position; as `load_state_dict`."""
        self._set_back(self.logger.branch)

    def switch_off(self, error: BaseException) -> None:
        """Write nothing more, because of `error`."""
        self._strikes = _FAILURES - 1
        self.failures = max(self.failures, _FAILURES - 1)
        self._failed(error)

    def ask_to_drain(self) -> threading.Event | None:
        """Queue a flush, and return what is set when it is done; None when there is nothing to wait for."""
        if not self._thread.is_alive() or self.off or self._closing:
            return None
        stored = threading.Event()
        self._queue.put(_Entry(self.logger.flush))
        self._queue.put(_Entry(stored.set, always=True))
        self._queue.put(_Entry(self._count_unsent))
        return stored

    def ask_to_close(self) -> bool:
        """Queue the end, and return whether there is something to wait for."""
        if not self._thread.is_alive() or self._hung:
            return False
        if not self._closing:
            self._closing = True
            self._queue.put(_Entry(self.logger.close, always=True))
            self._queue.put(_Entry(self._count_unsent, always=True))
            self._queue.put(None)
        return True

    def wait_for(self, stored: threading.Event | None, patience: Patience) -> None:
        """Wait for a flush, or without one for the end of the thread; switch a logger off that is not done by then."""
        if not patience.wait(self._ended if stored is None else stored.wait):
            self._give_up(f"did not answer for {_DEADLINE} s")

    def kept_waiting(self, seconds: float) -> None:
        """Take in that no thread ran for so long up to now, if a call of this logger is what kept them from it."""
        now = time.monotonic()
        began, ended = self._last_call
        since = self._busy_since
        if since is not None:
            began, ended = since, now
        if min(ended, now) - max(began, now - seconds) < 0.9 * seconds:
            return
        self._kept_waiting += seconds
        if self._kept_waiting > _DEADLINE:
            self._give_up(f"kept all other threads from running for {self._kept_waiting:.0f} s")

    def open(self, build: Callable[[], Logger]) -> None:
        """Build the logger, in its thread.

        Raises:
            RlcoreError: the config is wrong, or the logger is required and cannot be built.
        """
        answer = self._ask(build)
        if answer.error is None:
            self.logger = answer.value
        elif isinstance(answer.error, RlcoreError) and not self._hung:
            raise answer.error
        elif self.required:
            raise _refused(self.name, answer.error) from answer.error
        elif not self._hung:
            self.switch_off(answer.error)

    def _set_back(self, call: Callable[[], object]) -> None:
        """Make a call that sets the place from which rows go on."""
        if self.off:
            return
        error = self._ask(call).error
        with contextlib.suppress(Exception):
            self.differences = int(getattr(self.logger, "differences", 0))
        if error is None:
            return
        if self.required:
            raise _refused(self.name, error) from error
        if not self._hung:
            self.switch_off(error)

    def _ask(self, call: Callable[[], Any], seconds: float | None = None) -> _Answer:
        """Make a call in the thread of the logger, and return its answer; one that is late is given up."""
        seconds = _LONG_DEADLINE if seconds is None else seconds
        answer = _Answer(call)
        if self._thread.is_alive():
            self._queue.put(_Entry(answer.make, always=True))
        else:  # the logger is closed
            threading.Thread(target=answer.make, name=f"log-{self.name}", daemon=True).start()
        if not Patience(seconds, self.kept_waiting).wait(answer.done.wait):
            answer = _Answer(call)
            answer.error = TimeoutError(f"no answer for {seconds} s")
            self._give_up(f"did not answer for {seconds} s")
        return answer

    def _position(self) -> Mapping[str, Any]:
        self.files = [Path(file) for file in getattr(self.logger, "files", list)()]
        return self.logger.state_dict()

    def _count_unsent(self) -> None:
        """Ask how much waits for a server; a logger that cannot tell may write on."""
        try:
            self.unsent = int(getattr(self.logger, "unsent", 0))
        except BaseException as error:  # also an exit
            self.failures += 1
            if not self._cannot_count:
                self._cannot_count = True
                log.warning("logger %r cannot say how much is unsent: %s", self.name, describe(error))

    def _ended(self, seconds: float) -> bool:
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _hand_over(self, call: Callable[[], object], size: int = 0) -> None:
        """Queue a call if there is room, or is soon."""
        if self._strikes >= _FAILURES or self._closing:
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
            self._room.wait(_PATIENCE)  # another call may have held the GIL: this one may need only a moment
            if self._busy_since == since:
                self._give_up(f"did not answer for {_DEADLINE} s")
        elif not self._behind:
            log.warning("logger %r falls behind; what finds no room is left out and counted", self.name)
        self._behind = True

    def _run(self) -> None:
        while (entry := self._queue.get()) is not None:
            self._busy_since = began = time.monotonic()
            kind: Literal["row", "flush"] = "flush" if entry.size is None else "row"
            try:
                if entry.always or not self.off:
                    entry.call()
                    self._succeeded(kind, entry)
                elif entry.size is not None:
                    self.left_out += 1
            except BaseException as error:  # also an exit: it ends neither the thread nor the run
                self._failed(error, kind)
            self._busy_since, self._last_call = None, (began, time.monotonic())
            if entry.size is not None:
                with self._room:
                    self._rows -= 1
                    self._bytes -= entry.size
                    self._room.notify()
            if self._hung:  # given up in the meantime: what is left in the queue is not written late
                return

    def _give_up(self, why: str) -> None:
        if not self._hung:
            self._strikes = self.failures = _FAILURES
            self._hung = True
            log.warning("logger %r %s; it is switched off for this run", self.name, why)

    def _succeeded(self, kind: str, entry: _Entry) -> None:
        if kind == self._refused and not entry.always:
            self._refused = None
            log.warning("logger %r writes again", self.name)

    def _failed(self, error: BaseException, kind: Literal["row", "flush"] | None = None) -> None:
        """Count a failure, of a call of some kind that is tried again if the disk may take more later."""
        self.failures += 1
        if kind is not None and isinstance(error, OSError) and error.errno in _PASSING:
            if self._refused is None:
                log.warning("logger %r failed: %s; it is tried again with what comes", self.name, describe(error))
            self._refused = self._refused or kind
            return
        self._strikes += 1
        off = "; it is switched off for this run" if self._strikes == _FAILURES else ""
        log.warning("logger %r failed: %s%s", self.name, describe(error), off)


def open_writer(name: str, build: Callable[[], Logger], required: bool) -> LogWriter:
    """Start the thread of a logger and build it there; one that cannot be built is switched off, unless required.

    Raises:
        RlcoreError: the config is wrong, or the logger is required and cannot be built.
    """
    writer = LogWriter(name, LoggerBase(), required)
    try:
        writer.open(build)
    except BaseException:
        writer.close()
        raise
    return writer


def drain_all(writers: Iterable[LogWriter]) -> None:
    """Return when all have stored what they were given; together they are waited for no longer than one."""
    _wait_for_all([(writer, stored) for writer in writers if (stored := writer.ask_to_drain()) is not None])


def close_all(writers: Iterable[LogWriter]) -> None:
    """Close all; together they are waited for no longer than one."""
    _wait_for_all([(writer, None) for writer in writers if writer.ask_to_close()])


def _wait_for_all(asked: list[tuple[LogWriter, threading.Event | None]]) -> None:
    def stalled(seconds: float) -> None:
        for writer, _ in asked:
            writer.kept_waiting(seconds)

    patience = Patience(_DEADLINE, stalled)
    for writer, stored in asked:
        writer.wait_for(stored, patience)


def _refused(name: str, error: BaseException) -> ConfigError:
    return ConfigError(
        f"logger {name!r} says required = true and cannot start: {describe(error)}; fix that, or leave `required` out "
        "to train without it"
    )
