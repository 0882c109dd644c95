"""The launcher `torchrun`: ranks that torchrun starts, on one host or on several, and starts again when one dies."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel

from rlcore.errors import ConfigError
from rlcore_plugin_ddp.launchers import JoiningLauncher, RankPlace

if TYPE_CHECKING:
    from rlcore.types import Context, Group

# what torchrun sets, and what it calls a run to which nobody gave a name
RUN_ID: Final = "TORCHELASTIC_RUN_ID"
_NUMBERS: Final = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_MAX_RESTARTS")
_NAMELESS: Final = ("", "none")


class Torchrun(JoiningLauncher):
    """Connects ranks that torchrun starts: those of one host by shared memory, those of several by gloo.

    They find each other through the store of torchrun.
    """

    class Config(BaseModel, extra="forbid"):
        """It has no keys besides those of the section."""

    def __init__(self, config: Config, context: Context) -> None:
        self._count = 1
        self._deadline = 60.0

    @staticmethod
    def here() -> RankPlace:
        """Return where this process stands, as torchrun says.

        Raises:
            ConfigError: it was not started by torchrun.
        """
        name = os.environ.get(RUN_ID)
        if name is None:
            raise ConfigError(
                "[ranks] use = 'torchrun': this process was not started by torchrun; run "
                "torchrun --nproc-per-node N -m rlcore train CONFIG, or set use = 'auto'"
            )
        try:
            rank, size, local_rank, local_size, restarts = (int(os.environ[key]) for key in _NUMBERS)
        except (KeyError, ValueError) as error:
            raise ConfigError(
                f"[ranks] use = 'torchrun': {RUN_ID} is set, and not all of {', '.join(_NUMBERS)} are numbers: {error}"
            ) from error
        launch = f"torchrun {name}" if name not in _NAMELESS else f"torchrun process {_parent()}"
        return RankPlace(rank, size, local_rank, local_size, restarts, launch)

    def open(self, count: int, generation: int, deadline: float) -> None:
        """Take the number of ranks and the deadline; that of the generation is asked of the store."""
        self._count, self._deadline = count, deadline

    def join(self, rank: int) -> Group:
        """Return the group of this rank, once all have come."""
        from rlcore_plugin_ddp.gloo import GlooGroup
        from rlcore_plugin_ddp.joining import best
        from rlcore_plugin_ddp.meeting import Meeting
        from rlcore_plugin_ddp.moving import Moves

        local = int(os.environ["LOCAL_WORLD_SIZE"])
        meeting = Meeting(_endpoint(), rank, self._count, self._deadline)
        generation = meeting.meet()
        os.environ.pop(RUN_ID, None)  # what this process starts is no rank
        memory = meeting.memory(generation) if local == self._count else None
        if memory is not None and best() == "shared":
            from rlcore_plugin_ddp.shared import SharedGroup

            return SharedGroup(memory)
        address = meeting.address()
        moves = None if memory is not None else Moves(meeting.store, rank, self._count, generation, self._deadline)
        return GlooGroup(meeting.store, rank, self._count, generation, self._deadline, address, memory, moves)


def _endpoint() -> tuple[str, int, bool]:
    """Return host and port of the store, and whether torchrun itself keeps it."""
    kept = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    return os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), kept


def _parent() -> str:
    """Return what tells the process that started this one from all others, before and after it."""
    parent = os.getppid()
    boot = _read("/proc/sys/kernel/random/boot_id")
    fields = _read(f"/proc/{parent}/stat").rpartition(")")[2].split()
    return " ".join([str(parent), *fields[19:20], boot]).strip()  # the 20th after the name is the time of its start


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace").strip()
    except OSError:
        return ""
