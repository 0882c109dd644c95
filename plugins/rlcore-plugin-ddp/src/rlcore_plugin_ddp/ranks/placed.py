"""Ranks that a launcher places, seen from the process that takes the place of their template.

It answers the supervisor as the template does whose ranks are forked. What those ranks write on the board themselves,
it writes there for these, as they tell it through their mailbox; and it fetches the states that they keep, which
outlive them here.
"""

from __future__ import annotations

import json
import logging
import os
import select
import socket
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rlcore.errors import RlcoreError
from rlcore.run import Asked, Config
from rlcore_plugin_ddp.ranks.board import RankBoard
from rlcore_plugin_ddp.ranks.placed_rank import HEARD, SAID, START, STATE, TEXT, PlacedRank, lock_of, terminal_of
from rlcore_plugin_ddp.ranks.rank import LATER, Start

if TYPE_CHECKING:
    from rlcore_plugin_ddp.launchers import Mailbox, PlacingLauncher

log = logging.getLogger(__name__)

# seconds in which a rank that was begun imports what it needs
_STARTING: Final = 120.0
# seconds between two looks at the mailbox, and how much longer than it takes to fetch states none are fetched again
_LOOK: Final = 0.1
_SHARE: Final = 20.0


def serve_placed(
    config: Config, asked: Asked, channel: socket.socket, board: RankBoard, launcher: PlacingLauncher
) -> None:
    """Answer the supervisor until it is gone.

    Args:
        config: of the run, with `[ranks]`.
        asked: what the command asks.
        channel: to the supervisor.
        board: on which it sees the ranks.
        launcher: places them.

    Raises:
        ConfigError: ranks cannot be placed.
    """
    launcher.connect(board.size)
    try:
        _Placed(config, asked, channel, board, launcher).serve()
    finally:
        launcher.close()


class _Placed:
    """Has ranks placed, and tells how they are and how they end."""

    def __init__(
        self, config: Config, asked: Asked, channel: socket.socket, board: RankBoard, launcher: PlacingLauncher
    ) -> None:
        assert config.ranks is not None
        self._config = config
        self._asked = asked
        self._channel = channel
        self._board = board
        self._launcher = launcher
        self._deadline = config.ranks.deadline
        self._mailbox: Mailbox | None = None
        self._running: set[int] = set()
        # what the ranks say, states that they keep on their hosts included; on the other board are those kept here
        self._there = RankBoard(board.size)
        self._heard: set[int] = set()
        self._next_fetch = 0.0
        self._begun = 0.0

    def serve(self) -> None:
        """Answer until the other end is closed."""
        self._answer({"ready": True})
        stream = self._channel.makefile("rb", buffering=0)
        while True:
            if select.select([self._channel], [], [], _LOOK)[0]:
                line = stream.readline()
                if not line:
                    return
                command = json.loads(line)
                if "start" in command:
                    self._start(Start(**command["start"]))
                elif "kill" in command:
                    self._launcher.kill()
            self._tell_who_ended()

    def _tell_who_ended(self) -> None:
        """Pass on what the ranks say, and who of them has ended."""
        ended = self._launcher.ended()
        self._look()  # afterwards: what one that has ended said before is seen
        self._running.difference_update(rank for rank, _, _ in ended)
        if not self._running:
            self._mailbox = None  # the board is the next generation's
        # one that was killed is the cause of what the others say
        for rank, status, how in sorted(ended, key=lambda end: end.status):
            self._answer({"ended": rank, "status": status, "how": how})

    def _start(self, start: Start) -> None:
        """Have the ranks of a generation placed; where that cannot be, say why, and that they have ended with it."""
        states = self._kept(start)
        self._mailbox, self._heard = None, set()
        self._there.begin_generation()
        try:
            self._launcher.open(self._board.size, start.generation, self._deadline + LATER)
            mailbox = self._launcher.place(self._wait)
        except RlcoreError as error:
            log.error("error: %s", error)
            for rank in range(self._board.size):
                self._board.ends(rank, error.exit_code)
                self._answer({"ended": rank, "status": error.exit_code})
            return
        for rank, state in enumerate(states):
            mailbox.put(START.format(rank), state)
        self._mailbox, self._running = mailbox, set(range(self._board.size))
        self._say()
        self._launcher.begin(self._program(start))
        self._begun = time.monotonic()

    def _program(self, start: Start) -> PlacedRank:
        asked = self._asked
        if asked.time_limit is not None:  # the clocks of hosts differ
            until, spoken = asked.time_limit
            asked = replace(asked, time_limit=(until - time.monotonic(), spoken))
        return PlacedRank(
            asked=asked,
            size=self._board.size,
            start=start,
            folder=Path.cwd(),
            lock=lock_of(self._asked.place),
            terminal=terminal_of({"stdout": sys.stdout, "stderr": sys.stderr}),
        )

    def _kept(self, start: Start) -> list[bytes]:
        """Return the states from which the ranks go on, by rank; none where they go on from a checkpoint."""
        if start.place is None:
            return []
        fds = [self._board.place(rank, start.place) for rank in range(self._board.size)]
        return [os.pread(fd, os.fstat(fd).st_size, 0) for fd in fds]

    def _wait(self) -> None:
        """Say for ranks that have no place yet that they are not dead."""
        for rank in range(self._board.size):
            self._board.pulse(rank, frames=0)

    def _look(self) -> None:
        """Write on the board what the ranks say, and tell them what stands there."""
        if self._mailbox is None:
            return
        for rank in range(self._board.size):
            said = self._mailbox.get(HEARD.format(rank))
            if said is None and time.monotonic() < self._begun + _STARTING:
                self._board.pulse(rank, frames=0)
            elif said is not None and said != self._there.line(rank):
                self._hear(rank, said, self._mailbox)
        self._fetch(self._mailbox)
        self._say()

    def _hear(self, rank: int, said: bytes, mailbox: Mailbox) -> None:
        written = self._there.texts(rank)
        self._there.copy(rank, said)
        self._heard.add(rank)
        for number in range(written, self._there.texts(rank)):
            _write(mailbox.take(TEXT.format(rank, number)))
        self._board.hear(rank, said)

    def _say(self) -> None:
        assert self._mailbox is not None
        self._mailbox.put(SAID, self._board.line(None))

    def _fetch(self, mailbox: Mailbox) -> None:
        """Ask for the latest state that all ranks have kept, and keep it here when all have handed it over."""
        if len(self._heard) < self._board.size:
            return
        kept, wanted, ranks = self._board.kept(), self._board.wanted, range(self._board.size)
        here = -1 if kept is None else kept.frames
        if wanted is not None and wanted > here and all(self._there.sent(rank) == wanted for rank in ranks):
            began = time.monotonic()
            self._keep(mailbox, wanted, 0 if kept is None else 1 - kept.place)
            ended = time.monotonic()
            self._next_fetch = ended + _SHARE * (ended - began)
        elif time.monotonic() >= self._next_fetch:
            common = set.intersection(*(set(self._there.kept_by(rank).values()) for rank in ranks))
            self._board.wanted = max(common, default=None)

    def _keep(self, mailbox: Mailbox, frames: int, place: int) -> None:
        states = [mailbox.take(STATE.format(rank)) for rank in range(self._board.size)]
        for rank, state in enumerate(states):
            assert state is not None, "the rank says that it has put it there"
            self._board.keeps(rank, place, None)
            fd = self._board.place(rank, place)
            os.truncate(fd, len(state))
            os.pwrite(fd, state, 0)
        for rank in range(self._board.size):
            self._board.keeps(rank, place, frames)

    def _answer(self, content: dict[str, Any]) -> None:
        self._channel.sendall((json.dumps(content) + "\n").encode())


def _write(content: bytes | None) -> None:
    """Write a piece of text where the rank would have."""
    name, text = json.loads(content or b'["stdout", ""]')
    stream = sys.stdout if name == "stdout" else sys.stderr
    stream.write(text)
    stream.flush()
