"""What connects the processes that train together: the part that `[ranks] use` names."""

from __future__ import annotations

from typing import Protocol

from rlcore.types.group import Group


class Launcher(Protocol):
    """Connects the ranks that rlcore starts on this host.

    It is built once, in the process from which all ranks are forked.

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
