"""Sends a spool to its back end: the loop, and the program of the process in which it runs beside a training process.

A process of its own keeps what such libraries do away from training: drawing from the global random generators, setting
environment variables, holding the GIL, hanging at the exit.
"""

from __future__ import annotations

import gc
import importlib
import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, Protocol

from rlcore.errors import ConfigError, describe
from rlcore.files.lock import Lock
from rlcore.spooling.records import fault, fault_of_file
from rlcore.spooling.spool import UNKNOWN, Record, Spool

CLOSE: Final = "close\n"
HURRY: Final = "hurry\n"
LAST_WORDS: Final = 4.0
LINGER: Final = 60.0
_BATCH: Final = 100
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 30.0
# after sending what there was, rest so many times as long: what comes meanwhile is one request
_REST: Final = 100
_LONGEST_REST: Final = 5.0
_TURN: Final = 5.0
# after so many refusals of the same records by a back end that opens, it is found out which of them it refuses
_REFUSALS: Final = 3
# so many refusals one after another are the back end's and not the records'
_MOST_REFUSED: Final = 10


class Backend(Protocol):
    """Where records go. Every method may block, and may raise: then the same records are sent again later.

    A record is a table with `kind`, and apart from the config with `step` and `time` (seconds since 1970):

    | kind | further keys |
    | --- | --- |
    | `metrics` | `values`: number by name |
    | `histogram` | `name`, `counts`, `edges`, `not_finite` |
    | `image`, `video` | `name`, `file`: relative to the folder of the spool, and `fps` of a video |
    | `text` | `name`, `text` |
    | `hparams` | `config` |

    NaN and infinities are text, which `float()` reads.
    """

    def connect(self, known_id: str, token: str, continues: str) -> str:
        """Open a run, and return its id.

        Args:
            known_id: of the run; empty for one that is to be made.
            token: belongs to this run and no other.
            continues: id of the run that this one goes on from, where its rows could not be taken back; else empty.
        """
        ...

    def send(self, records: Sequence[Record], folder: Path) -> None:
        """Send records in order; `folder` is that of the spool."""
        ...

    def arrived(self) -> int | None:
        """Return how many records with a step the run has, once it is open; None where `send` waits until they arrive.

        Where it is a number, all that was sent since the last `disconnect` that returned True is offered again after a
        crash, less what has arrived.
        """
        ...

    def disconnect(self) -> bool:
        """End the run, when everything was sent, and return whether all of it has arrived."""
        ...


class Sender:
    """Sends the records of a spool, each once, until it is told to stop and nothing waits any more.

    Args:
        spool: what to send.
        backend: where to.
        report: hears `connected` with an empty text, and `error` and `warning` with a reason.

    Attributes:
        news: set when something was appended.
    """

    def __init__(self, spool: Spool, backend: Backend, report: Callable[[str, str], None]) -> None:
        self.spool = spool
        self.backend = backend
        self.news = threading.Event()
        self._stopping = threading.Event()
        self._hurrying = threading.Event()
        self._report = report
        self._connected = False
        self._confirms = True
        self._skip = self._handed = 0
        self._refused = (0, 0)

    def run(self) -> None:
        """Send until stopped."""
        pause = _FIRST_PAUSE
        while True:
            try:
                self._open()
                pause = _FIRST_PAUSE
                last = self._stopping.is_set()  # asked before reading, since all that came in is on disk by then
                if not self._send_batch() and last:
                    if self.backend.disconnect():
                        self.spool.confirm(self._handed)
                    return
            except Exception as error:
                self._connected = False
                self._report("error", describe(error).partition("\n")[0])
                if self._stopping.is_set():
                    return
                self._stopping.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    def hurry(self) -> None:
        """Do not rest before all that waits now is sent."""
        self._hurrying.set()
        self.news.set()

    def stop(self) -> None:
        """Send what is left and return; what cannot be sent by then stays."""
        self._stopping.set()
        self.hurry()

    def _open(self) -> None:
        if self._connected:
            return
        self.spool.go_back()
        sent = self.spool.sent
        known = bool(sent.id) and sent.lines != UNKNOWN
        sent.id = self.backend.connect(sent.id, sent.token, sent.continues)
        arrived = self.backend.arrived()
        self._confirms = arrived is None
        if not known:  # the run may have lines of others
            sent.lines = arrived or 0
        self._skip = max(0, (arrived or 0) - sent.lines)
        self.spool.write_sent()
        self._handed = 0
        self._connected = True
        self._report("connected", "")

    def _send_batch(self) -> bool:
        """Send some records; without any, wait a while for more. Return whether there were any."""
        self.news.clear()
        records, offset = self.spool.read(_BATCH)
        if not records:
            if not self._stopping.is_set() and not self.news.wait(0.2):
                self._hurrying.clear()
            return False
        began = time.monotonic()
        reasons = [self._fault(record) for record in records]
        good = [record for record, reason in zip(records, reasons, strict=True) if not reason]
        fresh = [part for record in good if (part := self.spool.without_repeats(record)) is not None]
        self._hand_over(fresh, offset)
        self._handed += sum("step" in record for record in fresh)
        for record, reason in zip(records, reasons, strict=True):
            if reason:
                self._set_aside(record, reason)
        self.spool.acknowledge(len(records), offset)
        if self._confirms:
            self.spool.confirm(self._handed)
            self._handed = 0
        if len(records) < _BATCH and not self._stopping.is_set():
            self._hurrying.wait(min(_REST * (time.monotonic() - began), _LONGEST_REST))
        return True

    def _fault(self, record: Record) -> str:
        return fault(record) or fault_of_file(record, self.spool.folder)

    def _hand_over(self, records: Sequence[Record], offset: int) -> None:
        """Hand records to the back end; one that it refuses again and again, while it takes others, is set aside.

        Raises:
            Exception: of the back end, which takes none of them for now.
        """
        left = self._without_arrived(records)
        place, refusals = self._refused
        try:
            if place != offset or refusals < _REFUSALS:
                self.backend.send(left, self.spool.folder)
            else:
                self._hand_over_each(left)
        except Exception:
            self._refused = (offset, refusals + 1 if place == offset else 1)
            raise
        self._refused = (0, 0)

    def _hand_over_each(self, records: Sequence[Record]) -> None:
        """Hand over one after another; those that are refused before another one is taken are set aside.

        Raises:
            Exception: the back end took none, or not the last ones.
        """
        refused: list[tuple[Record, Exception]] = []
        for record in records:
            try:
                self.backend.send([record], self.spool.folder)
            except Exception as error:
                refused.append((record, error))
                if len(refused) >= _MOST_REFUSED:
                    raise
            else:
                for bad, why in refused:
                    self._set_aside(bad, f"the back end refuses it: {describe(why)}")
                refused.clear()
        if refused:
            raise refused[-1][1]

    def _set_aside(self, record: Record, reason: str) -> None:
        place = self.spool.set_aside(record, reason)
        self._report("warning", f"a record cannot be sent and is set aside in {place}: {reason}")

    def _without_arrived(self, records: Sequence[Record]) -> list[Record]:
        """Leave out what the run has from before a crash; the config goes to it again."""
        left = []
        for record in records:
            if self._skip and "step" in record:
                self._skip -= 1
            else:
                left.append(record)
        return left


def make_backend(target: str, arguments: Mapping[str, Any]) -> Backend:
    """Import and build a back end; `target` is `module:Class`."""
    module, _, name = target.partition(":")
    backend: Backend = getattr(importlib.import_module(module), name)(**arguments)
    return backend


def lock_spool(folder: Path, seconds: float) -> Lock:
    """Return the lock of a spool, which the sender before may still hold for a moment.

    Raises:
        ConfigError: another process sends it all the time.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            return Lock(folder)
        except ConfigError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _start(folder: Path, report: Callable[[str, str], None]) -> Callable[[str, str], None]:
    """Wait until no other sender of the run starts, or a while; return `report`, whose first call ends the start.

    Importing several libraries at once would take more cores than one, and looking for garbage a quarter of the time.
    """
    gc.disable()
    try:
        turn = lock_spool(folder.parent, _TURN)
    except ConfigError:
        turn = None

    def reported(event: str, text: str) -> None:
        if not gc.isenabled():
            gc.freeze()
            gc.enable()
            if turn is not None:
                turn.release()
        report(event, text)

    return reported


class _Forward(logging.Handler):
    """Reports warnings of the back end to the training process."""

    report: Callable[[str, str], None]

    def emit(self, record: logging.LogRecord) -> None:
        self.report("warning", record.getMessage())


def main() -> None:
    """Send the spool that the first line of the input describes, until the input ends.

    After `hurry` it does not rest before all is sent. After `close` it has a minute to send what is left, and gives up
    at the first error; when the input ends without `close`, the training process is gone, and the rest is left to its
    resume.
    """
    order = json.loads(sys.stdin.readline())
    sys.path[:] = order["path"]
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints does not end up between the reports

    def report(event: str, text: str) -> None:
        try:
            channel.write(json.dumps([event, text]) + "\n")
            channel.flush()
        except OSError:  # nobody listens any more
            return

    if hasattr(os, "nice"):
        os.nice(10)
    forward = _Forward(logging.WARNING)
    forward.report = report
    logging.getLogger(order["target"].partition(".")[0]).addHandler(forward)
    try:
        folder = Path(order["folder"])
        started = _start(folder, report)
        lock = lock_spool(folder, LINGER)
        sender = Sender(Spool(folder), make_backend(order["target"], order["arguments"]), started)
    except Exception as error:
        report("error", describe(error))
        return
    threading.Thread(target=_obey, args=(sys.stdin, sender), daemon=True).start()
    sender.run()
    lock.release()
    channel.close()
    os._exit(0)  # a library may wait at the exit for a server that does not answer


def _obey(orders: IO[str], sender: Sender) -> None:
    """Stop the sender when the input says so or ends; end the process when it does not stop in time."""
    while (order := orders.readline()) == HURRY:
        sender.hurry()
    closed = order == CLOSE
    sender.stop()
    time.sleep(LINGER if closed else LAST_WORDS)
    os._exit(0)


if __name__ == "__main__":
    main()
