"""Where a sender runs: in a thread of the process that logs, or in a process of its own beside that."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from typing import IO, Any, TypeAlias

from rlcore.files import Lock
from rlcore.process import how_it_ended
from rlcore_plugin_spool.log_server import LogServer, make_log_server
from rlcore_plugin_spool.sender import CLOSE, HURRY, Sender
from rlcore_plugin_spool.spool import Spool

# takes an event and a text, as `report` of a `Sender`
Hear: TypeAlias = Callable[[str, str], None]


class SenderThread:
    """A sender in a thread of this process.

    Attributes:
        server: what talks to the server.
    """

    def __init__(self, spool: Spool, target: str, arguments: Mapping[str, Any], hear: Hear) -> None:
        self._spool = spool
        self._lock = Lock(spool.folder)
        self.server: LogServer = make_log_server(target, arguments)
        self._sender = Sender(Spool(spool.folder), self.server, hear)
        self._thread = threading.Thread(target=self._sender.run, name=f"send-{spool.folder.name}", daemon=True)
        self._thread.start()

    def tell(self) -> None:
        """Hand what was appended to the system, and say so."""
        self._spool.flush()
        self._sender.news.set()

    def hurry(self) -> None:
        """Send without resting until all is sent."""
        self._sender.hurry()

    def close(self, seconds: float) -> bool:
        """Stop, after at most `seconds`; return False."""
        self._sender.stop()
        self._thread.join(seconds)
        self._lock.release()
        return False


class SenderProcess:
    """A sender in a process of its own, which looks into the file by itself.

    Attributes:
        server: None; the process has it.
    """

    def __init__(self, spool: Spool, target: str, arguments: Mapping[str, Any], hear: Hear) -> None:
        self.server = None
        self._spool = spool
        # appended to, since earlier senders wrote there; a link that somebody put in its place is not followed
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(spool.folder / "sender.log", flags, 0o666), "ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "rlcore_plugin_spool.sender_program"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
                start_new_session=True,  # Ctrl-C is meant for the training process
            )
        order = {"folder": str(spool.folder), "target": target, "arguments": arguments, "path": sys.path}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._orders = self._process.stdin
        self._orders.write(json.dumps(order) + "\n")  # by a pipe, since others can see arguments
        self._orders.flush()
        self._listener = threading.Thread(target=self._listen, args=(self._process.stdout, hear), daemon=True)
        self._listener.start()

    def tell(self) -> None:
        """Hand what was appended to the system, where the process finds it."""
        self._spool.flush()

    def hurry(self) -> None:
        """Send without resting until all is sent."""
        self._order(HURRY)

    def close(self, seconds: float) -> bool:
        """Let the process send the rest, and wait for it for at most `seconds`; return whether it goes on by itself."""
        self._order(CLOSE)
        with contextlib.suppress(OSError):
            self._orders.close()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return True
        self._listener.join(seconds)  # what it said last
        return False

    def _order(self, order: str) -> None:
        with contextlib.suppress(OSError):  # it has ended
            self._orders.write(order)
            self._orders.flush()

    def _listen(self, reports: IO[str], hear: Hear) -> None:
        with reports:
            for line in reports:
                hear(*json.loads(line))
        code = self._process.wait()
        if code:
            hear("error", f"the sender {how_it_ended(code)}")
