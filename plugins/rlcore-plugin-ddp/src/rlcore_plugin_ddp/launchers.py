"""Launchers: base classes for what starts and connects the ranks of a run, by who starts them; light to import.

`ForkingLauncher` connects ranks that are forked from a process here, `PlacingLauncher` starts them itself, perhaps on
other hosts, and `JoiningLauncher` finds itself to be one of the ranks that something else has started.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rlcore.types import Launcher

if TYPE_CHECKING:
    import socket

    from rlcore.run import Asked, Config
    from rlcore.types import Group
    from rlcore_plugin_ddp.ranks.board import RankBoard

__all__ = [
    "ForkingLauncher",
    "JoiningLauncher",
    "Mailbox",
    "MeetingPlace",
    "PlacingLauncher",
    "RankEnd",
    "RankPlace",
    "RankProgram",
]


class RankPlace(NamedTuple):
    """Where a process stands among ranks that something else than rlcore started.

    Attributes:
        rank: its number.
        size: how many ranks there are.
        local_rank: its number among those of its host.
        local_size: how many of them are on its host.
        restarts: how often the ranks are started again when one of them ends before its time.
        launch: tells the ranks of one start, restarts included, from those of another.
    """

    rank: int
    size: int
    local_rank: int
    local_size: int
    restarts: int
    launch: str


class JoiningLauncher(Launcher):
    """A launcher for ranks that something else starts, watches and starts again: `rlcore train` is one of them.

    Its `open` and `join` are called in each rank; the number of the generation is the group's to say.
    """

    @classmethod
    def train(cls, asked: Asked) -> int:
        """Train this rank's share, and return the exit code of its command."""
        from rlcore_plugin_ddp.ranks.joining_command import train

        return train(asked)

    @staticmethod
    def here() -> RankPlace:
        """Return where this process stands.

        Raises:
            ConfigError: nothing has started it as a rank; says how to.
        """
        raise NotImplementedError


class _WatchedLauncher(Launcher):
    """A launcher for ranks that the process of the command watches."""

    @classmethod
    def train(cls, asked: Asked) -> int:
        """Start and watch the ranks, and return the exit code of the command."""
        from rlcore_plugin_ddp.ranks.supervisor import Supervisor

        return Supervisor(asked).run()

    def serve(self, config: Config, asked: Asked, channel: socket.socket, board: RankBoard) -> None:
        """Have ranks started as the supervisor says, until it is gone.

        Args:
            config: of the run, with `[ranks]`.
            asked: what the command asks.
            channel: to the supervisor.
            board: on which it sees the ranks.
        """
        raise NotImplementedError


class ForkingLauncher(_WatchedLauncher):
    """A launcher for ranks that are forked from one process on this host, which has everything imported.

    It is built once, in that process.
    """

    def serve(self, config: Config, asked: Asked, channel: socket.socket, board: RankBoard) -> None:
        """Fork ranks as the supervisor says, until it is gone."""
        from rlcore_plugin_ddp.ranks.template import Template

        Template(config, asked, channel, board, self).serve()


class Mailbox(Protocol):
    """What the process that watches over placed ranks and the ranks tell each other: by name, the latest content.

    One of them reads a name and another one writes it; from any thread.

    Raises:
        RankLost: in every method, where the other end is gone.
    """

    def put(self, name: str, content: bytes) -> None:
        """Write the content of a name, in place of the one before."""
        ...

    def get(self, name: str) -> bytes | None:
        """Return the content of a name; None where nobody has written it."""
        ...

    def take(self, name: str) -> bytes | None:
        """Return the content of a name, and forget it; None where nobody has written it."""
        ...


class MeetingPlace(Protocol):
    """What a rank finds its group by; a launcher is one, and so is what it sends to a rank elsewhere."""

    def join(self, rank: int) -> Group:
        """Return the group, in the process of the rank.

        Args:
            rank: its number.
        """
        ...


class RankEnd(NamedTuple):
    """How a rank that a launcher placed has ended.

    Attributes:
        rank: its number.
        status: the exit code, or minus the number of the signal that killed it.
        how: in words, where more is known than the status says; else empty.
    """

    rank: int
    status: int
    how: str = ""


# what a rank does, with its number, its end of the mailbox, and where it meets the others; returns the exit code
RankProgram = Callable[[int, Mailbox, MeetingPlace], int]


class PlacingLauncher(_WatchedLauncher):
    """A launcher that starts the ranks itself, perhaps on other hosts, where no memory of this one is seen.

    It is built once. Of each generation `open` comes first, then `place`, then `begin`; `join` is called in the rank.
    """

    def serve(self, config: Config, asked: Asked, channel: socket.socket, board: RankBoard) -> None:
        """Have ranks placed as the supervisor says, until it is gone."""
        from rlcore_plugin_ddp.ranks.placed import serve_placed

        serve_placed(config, asked, channel, board, self)

    def connect(self, count: int) -> None:
        """Get hold of what the ranks are started with; called once, before anything of the run is touched.

        Args:
            count: of ranks.

        Raises:
            ConfigError: it is not there, or has no room for so many; says what to do.
        """
        raise NotImplementedError

    def place(self, waiting: Callable[[], None]) -> Mailbox:
        """Find a place for each rank of the generation, and return this end of its mailbox.

        Args:
            waiting: to be called several times a second.

        Raises:
            ConfigError: there is none, or one where ranks cannot run; says what to do.
        """
        raise NotImplementedError

    def begin(self, program: RankProgram) -> None:
        """Let the ranks do what the program says, each in the main thread of a process of its own.

        Args:
            program: can be pickled.
        """
        raise NotImplementedError

    def ended(self) -> Sequence[RankEnd]:
        """Return the ranks of the generation that have ended since the last call."""
        raise NotImplementedError

    def kill(self) -> None:
        """End the ranks that run, at once."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of everything; called once."""
        raise NotImplementedError
