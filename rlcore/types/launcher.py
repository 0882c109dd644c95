"""What connects the processes that train together: the part that `[ranks] use` names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from rlcore.types.group import Group


class Launcher(Protocol):
    """Connects the ranks of a run.

    It is built once: in the process from which rlcore forks all ranks; or, if it is a `JoiningLauncher`, in each rank.

    Called in `rlcore/ranks/template.py`:

        self._launcher.open(self._count, start.generation, self._deadline + _LATER)

    Called in `rlcore/ranks/rank.py`:

        self._train(WaitingGroup(launcher.join(self._rank)))
    """

    def open(self, count: int, generation: int, deadline: float) -> None:
        """Make ready for the ranks of a generation, which are forked next.

        Args:
            count: of ranks.
            generation: how often ranks were started for this run, this time included; those of one never meet those of
                another.
            deadline: seconds in which a rank that others wait for does not move, after which it is lost.
        """
        ...

    def join(self, rank: int) -> Group:
        """Return the group, in the process that becomes a rank.

        Args:
            rank: its number.
        """
        ...


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


class JoiningLauncher(Launcher, Protocol):
    """A launcher for ranks that something else starts, watches and starts again: `rlcore train` is one of them.

    Its `open` and `join` are called in each rank; the number of the generation is the group's to say.

    Called in `rlcore/cli/train_joined.py`:

        place = launcher.here()
    """

    @staticmethod
    def here() -> RankPlace:
        """Return where this process stands.

        Raises:
            ConfigError: nothing has started it as a rank; says how to.
        """
        ...


class Mailbox(Protocol):
    """What the process that watches over placed ranks and the ranks tell each other: by name, the latest content.

    One of them reads a name and another one writes it; from any thread.

    Called in `rlcore/ranks/placed_rank.py`:

        said = self._mailbox.get(SAID)
        ...
        self._mailbox.put(heard_of(rank), heard.encode())

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
    """What a placed rank finds its group by; a launcher is one, and so is what it sends to a rank elsewhere.

    Called in `rlcore/ranks/joined.py`:

        group = WaitingGroup(launcher.join(rank))
    """

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


class PlacingLauncher(Launcher, Protocol):
    """A launcher that starts the ranks itself, perhaps on other hosts, where no memory of this one is seen.

    It is built once. Of each generation `open` comes first, then `place`, then `begin`; `join` is called in the rank.

    Called in `rlcore/ranks/placed.py`:

        launcher.connect(board.size)
        ...
        self._launcher.open(self._board.size, start.generation, self._deadline + _LATER)
        mailbox = self._launcher.place(self._wait)
        ...
        self._launcher.begin(self._program(start))
    """

    def connect(self, count: int) -> None:
        """Get hold of what the ranks are started with; called once, before anything of the run is touched.

        Args:
            count: of ranks.

        Raises:
            ConfigError: it is not there, or has no room for so many; says what to do.
        """
        ...

    def place(self, waiting: Callable[[], None]) -> Mailbox:
        """Find a place for each rank of the generation, and return this end of its mailbox.

        Args:
            waiting: to be called several times a second.

        Raises:
            ConfigError: there is none, or one where ranks cannot run; says what to do.
        """
        ...

    def begin(self, program: RankProgram) -> None:
        """Let the ranks do what the program says, each in the main thread of a process of its own.

        Args:
            program: can be pickled.
        """
        ...

    def ended(self) -> Sequence[RankEnd]:
        """Return the ranks of the generation that have ended since the last call."""
        ...

    def kill(self) -> None:
        """End the ranks that run, at once."""
        ...

    def close(self) -> None:
        """Let go of everything; called once."""
        ...
