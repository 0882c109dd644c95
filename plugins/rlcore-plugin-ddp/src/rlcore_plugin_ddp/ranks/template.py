"""The process from which all ranks of a run are forked: it has everything imported, so that they start at once.

It reads commands and answers on a socket, a JSON object per line; the first answer, `{"ready": true}`, comes by itself.

* `{"start": {...}}`: fork the ranks of a generation; answered `{"ended": RANK, "status": STATUS}` when one has ended.
* `{"kill": true}`: kill those that run.
"""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Iterator
from typing import Any, NoReturn

from rlcore.errors import RankLost
from rlcore.process import end_with_parent, usable_cores
from rlcore.run import Asked, Config
from rlcore.types import Launcher
from rlcore_plugin_ddp.ranks.board import RankBoard
from rlcore_plugin_ddp.ranks.rank import LATER, Rank, Start

log = logging.getLogger(__name__)


class Template:
    """Forks ranks, and tells how they end.

    Args:
        config: of the run, with `[ranks]`.
        asked: what the command asks.
        channel: to the supervisor.
        board: on which it sees the ranks.
        launcher: connects them.
    """

    def __init__(
        self, config: Config, asked: Asked, channel: socket.socket, board: RankBoard, launcher: Launcher
    ) -> None:
        assert config.ranks is not None
        self._config = config
        self._asked = asked
        self._channel = channel
        self._board = board
        self._count, self._deadline = config.ranks.count, config.ranks.deadline
        self._running: dict[int, int] = {}  # rank by process
        cores = usable_cores()
        if self._count > cores:
            log.warning("[ranks] count = %d: there are %d cores, so ranks take turns", self._count, cores)
        self._launcher = launcher

    def serve(self) -> None:
        """Answer until the other end is closed."""
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        self._answer({"ready": True})
        stream = self._channel.makefile("rb", buffering=0)
        channel = self._channel.fileno()
        while True:
            ready = select.select([channel, reading], [], [])[0]
            if reading in ready:
                os.read(reading, 4096)
                self._reap()
            if channel not in ready:
                continue
            line = stream.readline()
            if not line:
                return
            command = json.loads(line)
            if "start" in command:
                self._start(Start(**command["start"]), (reading, writing))
            elif "kill" in command:
                self._kill()

    def _start(self, start: Start, pipe: tuple[int, int]) -> None:
        """Fork the ranks of a generation."""
        self._launcher.open(self._count, start.generation, self._deadline + LATER)
        gc.collect()
        gc.freeze()
        for rank in range(self._count):
            child = os.fork()
            if not child:
                self._become(rank, start, pipe)
            self._running[child] = rank

    def _become(self, rank: int, start: Start, pipe: tuple[int, int]) -> NoReturn:
        """Be a rank, and end."""
        code = RankLost.exit_code
        try:
            end_with_parent()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._channel.close()
            for end in pipe:
                os.close(end)
            code = Rank(rank, self._config, self._asked, self._board, start).train(self._launcher)
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def _reap(self) -> None:
        for process, status in _ended(list(self._running)):
            self._answer({"ended": self._running.pop(process), "status": status})

    def _kill(self) -> None:
        for process in self._running:
            os.kill(process, signal.SIGKILL)

    def _answer(self, content: dict[str, Any]) -> None:
        self._channel.sendall((json.dumps(content) + "\n").encode())


def _ended(processes: list[int]) -> Iterator[tuple[int, int]]:
    """Yield each process that has ended, with its exit code, or minus the number of the signal that killed it."""
    for process in processes:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            yield process, os.waitstatus_to_exitcode(status)
