"""The launcher `processes`: ranks on this host, which meet in memory that only they have."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from pydantic import BaseModel

from rlcore.process import usable_cores
from rlcore_plugin_ddp.joining import best
from rlcore_plugin_ddp.launchers import ForkingLauncher
from rlcore_plugin_ddp.memory import Memory

if TYPE_CHECKING:
    from rlcore.types import Context, Group


class Processes(ForkingLauncher):
    """Connects ranks that are forked from this process: by shared memory or, where that is not safe, by gloo."""

    class Config(BaseModel, extra="forbid"):
        """It has no keys besides those of the section."""

    def __init__(self, config: Config, context: Context) -> None:
        self._memory: Memory | None = None
        self._deadline = 60.0
        self._listener: socket.socket | None = None

    def open(self, count: int, generation: int, deadline: float) -> None:
        """Make the memory of a generation, and let go of that of the one before."""
        if self._memory is not None:
            os.close(self._memory.fd)
        if self._listener is not None:
            self._listener.close()
        self._memory, self._deadline = Memory.create(count, generation), deadline
        self._listener = None if best() == "shared" else socket.create_server(("127.0.0.1", 0))

    def join(self, rank: int) -> Group:
        """Return the group of a rank."""
        assert self._memory is not None, "open comes before join"
        made = self._memory
        spin = made.size <= usable_cores()
        memory = Memory(made.fd, made.size, made.generation, rank, self._deadline, spin)
        if self._listener is None:
            from rlcore_plugin_ddp.shared import SharedGroup

            return SharedGroup(memory)
        from rlcore_plugin_ddp.gloo import GlooGroup

        return GlooGroup.on_one_host(memory, self._listener.getsockname()[1], self._listener.fileno())
