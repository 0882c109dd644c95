"""The program of the process in which a sender runs beside a training process.

A process of its own keeps what the libraries of servers do away from training: sampling from the global random
generators, setting environment variables, holding the GIL, hanging at the exit.
"""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final

from rlcore.errors import ConfigError, describe
from rlcore_plugin_spool.log_server import make_log_server
from rlcore_plugin_spool.sender import CLOSE, HURRY, LAST_WORDS, LINGER, Sender, lock_spool
from rlcore_plugin_spool.spool import Spool

# seconds that a start waits for those of other senders of the run
_TURN: Final = 5.0


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
    """Reports warnings of the library of a server to the training process."""

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
    sys.path[:] = order["path"]  # what the training process could import, a module beside its script too
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints does not end up between the reports

    def report(event: str, text: str) -> None:
        try:
            channel.write(json.dumps([event, text]) + "\n")
            channel.flush()
        except OSError:  # nobody listens any more
            return

    if sys.platform != "win32":
        os.nice(10)  # training comes first where cores are few
    forward = _Forward(logging.WARNING)
    forward.report = report
    logging.getLogger(order["target"].partition(".")[0]).addHandler(forward)
    try:
        folder = Path(order["folder"])
        started = _start(folder, report)
        lock = lock_spool(folder, LINGER)
        sender = Sender(Spool(folder), make_log_server(order["target"], order["arguments"]), started)
    except Exception as error:
        report("error", describe(error))
        return
    threading.Thread(target=_obey, args=(sys.stdin, sender), daemon=True).start()
    sender.run()
    lock.release()
    with contextlib.suppress(OSError):  # nobody listens any more
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
