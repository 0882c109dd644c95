"""What trains one config with several processes: the part that `[ranks] use` names."""

from __future__ import annotations

from typing import Any, Protocol

from rlcore.types.group import Group


class Launcher(Protocol):
    """Trains one config with several processes, called ranks, and connects them.

    A launcher derives from a base class in `rlcore_plugin_ddp.launchers`, which has `train`: it starts and watches the
    ranks. The launcher itself is built in a process of theirs.

    Called in `rlcore/cli/train.py`:

        return launcher_of(wanted).train(wanted)

    Called in `plugins/rlcore-plugin-ddp/src/rlcore_plugin_ddp/ranks/template.py`:

        self._launcher.open(self._count, start.generation, self._deadline + LATER)

    Called in `plugins/rlcore-plugin-ddp/src/rlcore_plugin_ddp/ranks/rank.py`:

        self._train(WaitingGroup(launcher.join(self._rank)))
    """

    @classmethod
    def train(cls, asked: Any) -> int:
        """Train as the command `rlcore train` was asked to, and return its exit code.

        The class is asked in the process of the command, where its module imports no torch.

        Args:
            asked: a `rlcore.run.Asked`.

        Raises:
            RlcoreError: before the first frame, of what cannot be used.
        """
        ...

    def open(self, count: int, generation: int, deadline: float) -> None:
        """Make ready for the ranks of a generation, which are started next.

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
