"""Sends the records of a spool to a server, each once, in order, and again later when that fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from rlcore.errors import ConfigError, describe
from rlcore.files import Lock
from rlcore_plugin_spool.log_server import LogServer
from rlcore_plugin_spool.notes import UNKNOWN
from rlcore_plugin_spool.records import Record, fault, fault_of_file
from rlcore_plugin_spool.spool import Spool

CLOSE: Final = "close\n"
HURRY: Final = "hurry\n"
# seconds for the rest: that a caller waits who closes a logger, as a short run ends while its sender imports a library;
# that a process goes on for after that; and after the training process was killed
CLOSING: Final = 10.0
LINGER: Final = 60.0
LAST_WORDS: Final = 4.0
# records that are handed over together
_BATCH: Final = 100
# seconds before another attempt, twice as many after each that fails
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 30.0
# after sending what there was, rest so many times as long: what comes meanwhile is one request
_REST: Final = 100
_LONGEST_REST: Final = 5.0
# after so many refusals of the same records by a server that answers, it is found out which of them it refuses
_REFUSALS: Final = 3
# so many refusals one after another are the server's and not the records'
_MOST_REFUSED: Final = 10


class Sender:
    """Sends the records of a spool, each once, until it is told to stop and nothing waits any more.

    Args:
        spool: what to send.
        server: where to.
        report: hears `connected` with an empty text, and `error` and `warning` with a reason.

    Attributes:
        news: set when something was appended.
    """

    def __init__(self, spool: Spool, server: LogServer, report: Callable[[str, str], None]) -> None:
        self.spool = spool
        self.server = server
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
                    if self.server.disconnect():
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
        is_known = bool(sent.id) and sent.lines != UNKNOWN
        sent.id = self.server.connect(sent.id, sent.token, sent.continues)
        arrived = self.server.arrived()
        self._confirms = arrived is None
        if not is_known:  # the run may have lines of others
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
        """Hand records to the server; one that it refuses again and again, while it takes others, is set aside.

        Raises:
            Exception: of the server, which takes none of them for now.
        """
        left = self._without_arrived(records)
        place, refusals = self._refused
        try:
            if place != offset or refusals < _REFUSALS:
                self.server.send(left, self.spool.folder)
            else:
                self._hand_over_each(left)
        except Exception:
            self._refused = (offset, refusals + 1 if place == offset else 1)
            raise
        self._refused = (0, 0)

    def _hand_over_each(self, records: Sequence[Record]) -> None:
        """Hand over one after another; those that are refused before another one is taken are set aside.

        Raises:
            Exception: the server took none, or not the last ones.
        """
        refused: list[tuple[Record, Exception]] = []
        for record in records:
            try:
                self.server.send([record], self.spool.folder)
            except Exception as error:
                refused.append((record, error))
                if len(refused) >= _MOST_REFUSED:
                    raise
            else:
                for bad, why in refused:
                    self._set_aside(bad, f"the server refuses it: {describe(why)}")
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
