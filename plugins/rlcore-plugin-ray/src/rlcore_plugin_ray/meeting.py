"""Where the ranks of a generation meet: what an actor is sent, and finds its group and its mailbox by."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from rlcore_plugin_ddp.gloo import GlooGroup
from rlcore_plugin_ddp.memory import Memory
from rlcore_plugin_ddp.shared import SharedGroup

from rlcore_plugin_ray.mailbox import StoreMailbox, reach_store

if TYPE_CHECKING:
    from rlcore_plugin_ddp.launchers import Mailbox

    from rlcore.types import Group

# seconds that the process which watches may take to answer
_ANSWER: Final = 60.0
# seconds of a call between hosts: who does not move, that process finds out, and ends the call by ending the ranks
_CALL: Final = 7 * 24 * 3600.0


@dataclass(frozen=True)
class Meeting:
    """Where the ranks of a generation meet.

    Attributes:
        size: how many there are.
        generation: how often ranks were started for this run, this time included.
        deadline: seconds in which a rank that others wait for does not move, after which it is lost; on one host.
        process: number of the process that watches over them.
        fd: file descriptor, in that process, of the memory that ranks on its host share; -1 for none.
        memory: what tells that memory from any other.
        address: of that host.
        port: at which that process serves a store there.
        shared: whether all ranks reach that memory.
        own: address of the rank's host, to which its sockets are bound.
    """

    size: int
    generation: int
    deadline: float
    process: int
    fd: int
    memory: str
    address: str
    port: int
    shared: bool
    own: str

    def reaches_memory(self) -> bool:
        """Return whether this process is on the host of that one, and may open what that one has open."""
        if self.fd < 0:
            return False
        try:
            fd = self._open()
        except OSError:
            return False
        try:
            return identity_of(fd) == self.memory
        finally:
            os.close(fd)

    def at(self, address: str, shared: bool) -> Self:
        """Return it for a rank with that address, once it is known whether all share memory."""
        return replace(self, own=address, shared=shared)

    def mailbox(self) -> Mailbox:
        """Return the rank's end of the mailbox."""
        return StoreMailbox(self._store(_ANSWER))

    def beats(self, rank: int) -> Callable[[], None]:
        """Return what says, through the store, that a rank moves; to be called again and again."""
        store, count = self._store(_ANSWER), itertools.count(1)
        return lambda: store.set(f"beats/{rank}", str(next(count)))

    def join(self, rank: int) -> Group:
        """Return the group of a rank."""
        if self.shared:
            spin = self.size <= len(os.sched_getaffinity(0))
            return SharedGroup(Memory(self._open(), self.size, self.generation, rank, self.deadline, spin))
        return GlooGroup(self._store(_ANSWER), rank, self.size, self.generation, _CALL, self.own)

    def _open(self) -> int:
        return os.open(f"/proc/{self.process}/fd/{self.fd}", os.O_RDWR | os.O_CLOEXEC)

    def _store(self, seconds: float) -> Any:
        return reach_store(self.address, self.port, seconds)


def beaten(store: Any, rank: int) -> bytes | None:
    """Return what changes as long as a rank calls what `Meeting.beats` returned; None before the first time."""
    found: bytes | None = store.get(f"beats/{rank}") if store.check([f"beats/{rank}"]) else None
    return found


def identity_of(fd: int) -> str:
    """Return what tells what a file descriptor stands for from anything else, on this host and others."""
    found = os.fstat(fd)
    return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {found.st_dev} {found.st_ino}"
