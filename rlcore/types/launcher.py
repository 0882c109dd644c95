"""What connects the processes that train together: the part that `[ranks] use` names."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from rlcore.types.group import Group


class Launcher(Protocol):
    """Connects the ranks of a run.

    It is built once: in the process from which rlcore forks all ranks; or, if it is a `JoiningLauncher`, in each rank.

    Called in `rlcore/ranks/template.py`:

        self._launcher.open(self._count, start.generation, self._deadline + _LATER)

    Called in `rlcore/ranks/rank.py`:

        self._train(launcher.join(self._rank))
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
