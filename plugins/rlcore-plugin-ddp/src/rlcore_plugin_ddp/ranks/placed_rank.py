"""A rank where a launcher placed it, perhaps on another host: it tells the supervisor through a mailbox how it is."""

from __future__ import annotations

import io
import json
import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TextIO

from rlcore.errors import ConfigError, RankLost, RlcoreError, describe
from rlcore.files import LOCK_FILE
from rlcore.process import show_log
from rlcore.run import Asked, validated
from rlcore_plugin_ddp.launchers import Mailbox, MeetingPlace
from rlcore_plugin_ddp.ranks.board import RankBoard
from rlcore_plugin_ddp.ranks.rank import Rank, Start

log = logging.getLogger(__name__)

# seconds between two messages, and between two states that are kept: each is fetched before the next but one is there
_TELL: Final = 0.1
_KEEP: Final = 1.0
# names of the mailbox: what the ranks are told; of each, what it says, the state that it hands over, the state from
# which it goes on; and the pieces of text that it writes, each a JSON list of the stream's name and the text
SAID: Final = "said"
HEARD: Final = "heard/{}"
STATE: Final = "state/{}"
START: Final = "start/{}"
TEXT: Final = "text/{}/{}"


@dataclass(frozen=True)
class Terminal:
    """What the terminal of the command is like, if there is one.

    Attributes:
        streams: the names of the streams that are terminals, of `stdout` and `stderr`.
        columns: how wide it is.
    """

    streams: tuple[str, ...]
    columns: int


@dataclass(frozen=True)
class PlacedRank:
    """What a placed rank does; it can be pickled.

    Attributes:
        asked: what the command asks; its time limit counts from when this was made.
        size: how many ranks there are.
        start: of the generation.
        folder: working directory of the command.
        lock: what the lock of the run folder says, by which another host knows that it sees the same folder.
        terminal: of the command.
    """

    asked: Asked
    size: int
    start: Start
    folder: Path
    lock: str
    terminal: Terminal

    def __call__(self, rank: int, mailbox: Mailbox, meeting: MeetingPlace) -> int:
        """Train to the end of the run, and return the exit code."""
        os.environ.setdefault("COLUMNS", str(self.terminal.columns))
        board = RankBoard(self.size)
        with _Telling(rank, mailbox, board).telling() as telling, self._output(telling):
            try:
                return self._train(rank, mailbox, meeting, board)
            except RankLost as lost:
                log.error("rank %d: %s", rank, lost)
                board.dies(rank, str(lost), lost.rank)
                return RankLost.exit_code
            except RlcoreError as error:
                log.error("error: rank %d: %s", rank, error)
                board.dies(rank, describe(error))
                board.ends(rank, error.exit_code)
                return error.exit_code

    def _train(self, rank: int, mailbox: Mailbox, meeting: MeetingPlace, board: RankBoard) -> int:
        start, asked = self.start, self.asked
        self._find_folders(rank)
        config = validated(asked.raw, asked.enable, asked.disable)
        if start.place is not None:
            kept = mailbox.take(START.format(rank))
            assert kept is not None, "it is put there before any rank begins"
            start = replace(start, place=0)
            fd = board.place(rank, 0)
            os.truncate(fd, len(kept))
            os.pwrite(fd, kept, 0)
        if asked.time_limit is not None:
            left, spoken = asked.time_limit
            asked = replace(asked, time_limit=(time.monotonic() + left, spoken))
        return Rank(rank, config, asked, board, start, _KEEP).train(meeting)

    def _find_folders(self, rank: int) -> None:
        """Work where the command does, and see the run folder where the rank needs it.

        Raises:
            ConfigError: this host has no such folder.
        """
        host = os.uname().nodename
        try:
            os.chdir(self.folder)
        except OSError as error:
            raise ConfigError(
                f"[ranks] use: host {host} has no folder {str(self.folder)!r} ({error.strerror}), in which the command "
                "was given; ranks on several hosts need the same folders on all of them"
            ) from error
        reads = self.start.place is None and (self.start.again or self.asked.resume is not None)
        if (not rank or reads) and _read(self.asked.place / LOCK_FILE) != self.lock:
            raise ConfigError(
                f"[run] folder: host {host} does not see the run folder {str(self.asked.place.absolute())!r}; put it "
                "on a file system that all hosts share"
            )

    @contextmanager
    def _output(self, telling: _Telling) -> Iterator[None]:
        """Write what this process writes on the streams of the command."""
        streams = {name: _Output(name, telling, name in self.terminal.streams) for name in ("stdout", "stderr")}
        with redirect_stdout(streams["stdout"]), redirect_stderr(streams["stderr"]):
            show_log(self.asked.quiet, force=True)
            yield


class _Telling:
    """Tells the supervisor how a rank is, and the rank what the supervisor says, from a thread beside it."""

    def __init__(self, rank: int, mailbox: Mailbox, board: RankBoard) -> None:
        self._rank = rank
        self._mailbox = mailbox
        self._board = board
        self._lock = threading.Lock()
        self._texts: list[tuple[str, str]] = []
        self._texts_sent = 0
        self._sent: int | None = None
        self._done = threading.Event()

    @contextmanager
    def telling(self) -> Iterator[_Telling]:
        """Do so during what happens inside, and once more afterwards."""
        thread = threading.Thread(target=self._tell_on, name="rlcore telling", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._done.set()
            thread.join()

    def write(self, stream: str, text: str) -> None:
        """Hand over text for a stream of the command; from any thread."""
        with self._lock:
            self._texts.append((stream, text))

    def _tell_on(self) -> None:
        try:
            while not self._done.wait(_TELL):
                self._tell()
            self._tell()
        except RankLost:  # who watches over this rank is gone
            os._exit(RankLost.exit_code)

    def _tell(self) -> None:
        board, rank, mailbox = self._board, self._rank, self._mailbox
        said = mailbox.get(SAID)
        if said is not None:
            board.copy(None, said)
        with self._lock:
            texts, self._texts = self._texts, []
        for stream, text in _joined(texts):
            mailbox.put(TEXT.format(rank, self._texts_sent), json.dumps([stream, text]).encode())
            self._texts_sent += 1
        kept, wanted = board.kept_by(rank), board.wanted
        if wanted is not None and wanted != self._sent and wanted in kept.values():
            self._hand_over(wanted, kept)
        board.sends(rank, self._sent, self._texts_sent)
        mailbox.put(HEARD.format(rank), board.line(rank))

    def _hand_over(self, frames: int, kept: dict[int, int]) -> None:
        """Put the kept state of a frame into the mailbox, unless another one came in its place meanwhile."""
        place = next(place for place, of in kept.items() if of == frames)
        fd = self._board.place(self._rank, place)
        content = os.pread(fd, os.fstat(fd).st_size, 0)
        if self._board.kept_by(self._rank).get(place) == frames:
            self._mailbox.put(STATE.format(self._rank), content)
            self._sent = frames


class _Output(io.TextIOBase):
    """A stream of the command, as a rank on another host has it."""

    def __init__(self, name: str, telling: _Telling, terminal: bool) -> None:
        self._name = name
        self._telling = telling
        self._terminal = terminal

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """How text is written."""
        return "utf-8"

    def isatty(self) -> bool:
        """Return whether the command writes it on a terminal."""
        return self._terminal

    def writable(self) -> bool:
        """Return that it can be written to."""
        return True

    def write(self, text: str) -> int:
        """Hand it over."""
        self._telling.write(self._name, text)
        return len(text)


def _joined(texts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the texts with those that follow each other on one stream as one."""
    joined: list[tuple[str, str]] = []
    for stream, text in texts:
        if joined and joined[-1][0] == stream:
            joined[-1] = (stream, joined[-1][1] + text)
        else:
            joined.append((stream, text))
    return joined


def lock_of(place: Path) -> str:
    """Return what the lock of a run folder says."""
    return _read(place / LOCK_FILE)


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def terminal_of(streams: dict[str, TextIO | Any]) -> Terminal:
    """Return what the terminal of this process is like."""
    names = tuple(name for name, stream in streams.items() if stream.isatty())
    try:
        columns = os.get_terminal_size(2).columns
    except OSError:
        columns = 80
    return Terminal(names, columns)
