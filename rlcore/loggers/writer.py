"""A thread between the training loop and one logger, so that writing never holds up training.

A logger that fails or hangs is switched off and reported, one that falls behind leaves rows out and they are counted;
the run goes on as it would without a logger.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rlcore.errors import ConfigError, RlcoreError, describe
from rlcore.loggers import limits
from rlcore.loggers.base import LoggerBase
from rlcore.loggers.calls import Answer, CallThread, Room
from rlcore.loggers.plain import as_logger
from rlcore.loggers.standing import Standing
from rlcore.process.board import Stillness
from rlcore.types import Logger
from rlcore.types.part import with_defaults

log = logging.getLogger(__name__)


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
        unsent: how many records waited on disk for a server when that was last asked; 0 for a logger without one.
        differences: how much a resume found to be other than the checkpoint says.
        files: what is to outlive a power cut together with the checkpoint whose state was taken last.
        standing: what became of the calls.
        thread: makes the calls; where it has `turns`, only while no other logger with the same lock makes one.
    """

    observer: Final = True

    def __init__(self, name: str, logger: Logger, required: bool = False) -> None:
        self.name = name
        self.logger = as_logger(logger)
        self.required = required
        self.unsent = 0
        self.differences = 0
        self.files: list[Path] = []
        self._cannot_count = False
        self._closing = False
        self._room = Room()
        self.standing = Standing(name)
        self.thread = CallThread(self._room, self.standing)
        self.thread.start()

    @property
    def failures(self) -> int:
        """How many calls of the logger raised.

        After three it is switched off; those that a full disk caused count here, but it is tried again after them.
        """
        return self.standing.failures

    @property
    def left_out(self) -> int:
        """How many calls found no room, or came after the logger was switched off."""
        return self._room.left_out

    @property
    def off(self) -> bool:
        """Whether nothing more is written."""
        return self.standing.off

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

    def show(self, call: Callable[[Logger], object], size: int) -> None:
        """Hand over a call that shows a video, an image, a histogram or a text.

        Args:
            call: makes it of the logger.
            size: bytes that wait until then.
        """
        self._hand_over(lambda: call(self.logger), size)

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
        if self.thread.is_alive():
            self.thread.put(self.logger.flush)
        answer = self._ask(self._position, limits.DEADLINE)
        if answer.error is not None and not self.standing.hung:
            self.standing.failed(answer.error, "flush")
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
        self._set_back(self.logger.begin_anew)

    def branch(self) -> None:
        """Tell the logger that what comes differs from what it wrote after its position; as `load_state_dict`."""
        self._set_back(self.logger.branch)

    def switch_off(self, error: BaseException) -> None:
        """Write nothing more, because of `error`."""
        self.standing.switch_off(error)

    def ask_to_drain(self) -> threading.Event | None:
        """Queue a flush, and return what is set when it is done; None when there is nothing to wait for."""
        if not self.thread.is_alive() or self.off or self._closing:
            return None
        stored = threading.Event()
        self.thread.put(self.logger.flush)
        self.thread.put(stored.set, always=True)
        self.thread.put(self._count_unsent)
        return stored

    def ask_to_close(self) -> bool:
        """Queue the end, and return whether there is something to wait for."""
        if not self.thread.is_alive() or self.standing.hung:
            return False
        if not self._closing:
            self._closing = True
            self.thread.put(self.logger.close, always=True)
            self.thread.put(self._count_unsent, always=True)
            self.thread.end_after_these()
        return True

    def wait_for(self, stored: threading.Event | None, stillness: Stillness, seconds: float) -> None:
        """Wait for a flush, or without one for the end of the thread; switch a logger off that is not done by then."""
        if not stillness.wait(self.thread.ended if stored is None else stored.wait, seconds):
            self._give_up_after(seconds)

    def open(self, build: Callable[[], Logger]) -> None:
        """Build the logger, in its thread.

        Raises:
            RlcoreError: the config is wrong, or the logger is required and cannot be built.
        """
        answer = self._ask(build)
        if answer.error is None:
            self.logger = as_logger(answer.value)
        elif isinstance(answer.error, RlcoreError) and not self.standing.hung:
            raise answer.error
        elif self.required:
            raise _refused(self.name, answer.error) from answer.error
        elif not self.standing.hung:
            self.switch_off(answer.error)

    def _set_back(self, call: Callable[[], object]) -> None:
        """Make a call that sets the place from which rows go on."""
        if self.off:
            return
        error = self._ask(call).error
        with contextlib.suppress(Exception):
            self.differences = int(self.logger.differences)
        if error is None:
            return
        if self.required:
            raise _refused(self.name, error) from error
        if not self.standing.hung:
            self.switch_off(error)

    def _ask(self, call: Callable[[], Any], seconds: float | None = None) -> Answer:
        """Make a call in the thread of the logger, and return its answer; one that is late is given up."""
        seconds = limits.LONG_DEADLINE if seconds is None else seconds
        answer = Answer(call)
        if self.thread.is_alive():
            self.thread.put(answer.make, always=True)
        else:  # the logger is closed
            threading.Thread(target=answer.make, name=self.thread.name, daemon=True).start()
        stillness = Stillness(stalled=functools.partial(_find_what_held, [self]))
        if not stillness.wait(answer.done.wait, seconds):
            answer = Answer(call)  # another one, since the call may still answer
            answer.error = TimeoutError(f"no answer for {seconds} s")
            self._give_up_after(seconds)
        return answer

    def _give_up_after(self, seconds: float) -> None:
        self.standing.give_up(f"did not answer for {seconds} s")

    def _position(self) -> Mapping[str, Any]:
        self.files = [Path(file) for file in self.logger.files()]
        return self.logger.state_dict()

    def _count_unsent(self) -> None:
        """Ask how much waits for a server; a logger that cannot tell may write on."""
        try:
            self.unsent = int(with_defaults(self.logger, Logger).unsent or 0)
        except BaseException as error:  # also an exit
            self.standing.failures += 1
            if not self._cannot_count:
                self._cannot_count = True
                log.warning("logger %r cannot say how much is unsent: %s", self.name, describe(error))

    def _hand_over(self, call: Callable[[], object], size: int = 0) -> None:
        """Queue a call if there is room, or is soon."""
        if not (self.off or self._closing):
            if self._room.take(size):
                self.thread.put(call, size)
                return
            self._look_at_what_takes_so_long()
        self._room.left_out += 1

    def _look_at_what_takes_so_long(self) -> None:
        """Give a logger up whose last call takes too long; of one that only falls behind, say so once."""
        since = self.thread.busy_since
        if since is not None and time.monotonic() - since > limits.DEADLINE:
            self._room.wait()  # another call may have held the GIL: this one may need only a moment
            if self.thread.busy_since == since:
                self._give_up_after(limits.DEADLINE)
        elif not self._room.behind:
            log.error("logger %r falls behind; what finds no room is left out and counted", self.name)
        self._room.behind = True


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
    flushes = [(writer, stored) for writer in writers if (stored := writer.ask_to_drain()) is not None]
    _wait_for_all(flushes, limits.DEADLINE)


def close_all(writers: Iterable[LogWriter]) -> None:
    """Close all; together they are waited for no longer than one."""
    closing = [writer for writer in writers if writer.ask_to_close()]
    # how much is unsent is asked in the thread of the logger alone, since that may hang
    sending = any(inspect.getattr_static(writer.logger, "unsent", None) is not None for writer in closing)
    _wait_for_all([(writer, None) for writer in closing], limits.CLOSING if sending else limits.DEADLINE)


def _wait_for_all(flushes: Sequence[tuple[LogWriter, threading.Event | None]], seconds: float) -> None:
    stillness = Stillness(stalled=functools.partial(_find_what_held, [writer for writer, _ in flushes]))
    for writer, stored in flushes:
        writer.wait_for(stored, stillness, seconds)


def _find_what_held(writers: list[LogWriter], seconds: float) -> None:
    """Tell the logger whose call kept all threads from running; where several may have, let the next stall show it.

    A call that only sleeps or waits for a disk while another one holds the GIL lasts as long as that one.
    """
    suspects = [writer for writer in writers if writer.thread.filled(seconds)]
    if len(suspects) == 1:
        suspects[0].standing.held_others_up(seconds)
        return
    turns = threading.Lock()
    for writer in suspects:
        writer.thread.turns = turns


def _refused(name: str, error: BaseException) -> ConfigError:
    return ConfigError(
        f"logger {name!r} says required = true and cannot start: {describe(error)}; fix that, or leave `required` out "
        "to train without it"
    )
