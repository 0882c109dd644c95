"""Where ranks that were started one by one find each other: a store that all of them reach.

A store may outlive its ranks, so what those of an earlier start have left there must mislead nobody. So each rank comes
with a word that nobody had before; the first answers it with the number of the generation, and each confirms that.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
from datetime import timedelta
from typing import Any, Final

import torch.distributed

from rlcore.errors import ConfigError, RankLost
from rlcore.process import usable_cores
from rlcore_plugin_ddp.memory import Memory

_distributed: Final[Any] = torch.distributed  # its stores have no types

# seconds until all ranks have come: each imports torch first
_COMING: Final = 120.0
_LOOK: Final = 0.02


class Meeting:
    """A store, and what the ranks say to each other in it.

    Args:
        endpoint: host and port of the store, and whether somebody else keeps it; else rank 0 does.
        rank: number of this process, from 0.
        size: how many there are.
        deadline: seconds that a rank is waited for without its moving.
        coming: seconds until all have come, if that is longer than the deadline.

    Attributes:
        store: a `torch.distributed.Store`.

    Raises:
        RankLost: the store cannot be reached.
    """

    def __init__(
        self, endpoint: tuple[str, int, bool], rank: int, size: int, deadline: float, coming: float = _COMING
    ) -> None:
        self._host, self._port, kept = endpoint
        self._rank, self._size, self._deadline = rank, size, deadline
        self._seconds = max(deadline, coming)
        self.store = self._opened(not kept and not rank)

    def meet(self) -> int:
        """Wait until all ranks have come, and return the number of their generation.

        Raises:
            RankLost: not all have come in time; names who has not.
        """
        try:
            return self._follow() if self._rank else self._lead()
        except RuntimeError as error:
            if isinstance(error, RankLost):
                raise
            raise RankLost(f"rank {self._rank} of {self._size} finds no rank 0: {error}", 0) from error

    def memory(self, generation: int) -> Memory | None:
        """Return memory that the ranks of one host share; None where they cannot, which all of them find."""
        made = hasattr(os, "memfd_create") and not self._rank
        fd = Memory.create(self._size, generation).fd if made else None
        if not self._rank:
            where = None if fd is None else [os.getpid(), fd, os.fstat(fd).st_ino]
            self.store.set(f"rlcore/{generation}/memory", json.dumps(where))
        elif (where := json.loads(self.store.get(f"rlcore/{generation}/memory"))) is not None:
            fd = _opened(*where)
        self.store.set(f"rlcore/{generation}/sees/{self._rank}", "" if fd is None else "memory")
        said = [self.store.get(f"rlcore/{generation}/sees/{rank}") for rank in range(self._size)]
        if fd is None or not all(said):
            return None
        spin = self._size <= usable_cores()
        return Memory(fd, self._size, generation, self._rank, self._deadline, spin)

    def address(self) -> str:
        """Return the address of this host at which other ranks reach it: that from which it reaches the store.

        `GLOO_SOCKET_IFNAME`, which names an interface to everything else that uses gloo, goes first.

        Raises:
            ConfigError: there is no such interface, or it has no address.
        """
        interface = os.environ.get("GLOO_SOCKET_IFNAME")
        if interface:
            return _address_of(interface)
        family, _, _, _, place = socket.getaddrinfo(self._host, self._port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(place)  # sends nothing
            return str(probe.getsockname()[0])

    def _opened(self, keep: bool) -> Any:
        """Return the store, which this process keeps if it is to, bound to its one address."""
        within = timedelta(seconds=self._seconds)
        try:
            if not keep:
                return _distributed.TCPStore(self._host, self._port, None, False, within, False)
            listener = socket.create_server((self._host, self._port))
            store = _distributed.TCPStore(
                self._host, self._port, None, True, within, False, master_listen_fd=listener.fileno()
            )
            listener.detach()  # it is the store's
            return store
        except (OSError, RuntimeError) as error:
            where = f"{self._host}:{self._port}"
            raise RankLost(f"rank {self._rank} cannot reach the store of the ranks at {where}: {error}", 0) from error

    def _follow(self) -> int:
        word = secrets.token_hex(8)
        self.store.set(f"rlcore/came/{self._rank}", word)
        generation = int(self.store.get(f"rlcore/goes/{word}"))
        self.store.set(f"rlcore/{generation}/there/{self._rank}", word)
        self.store.wait([f"rlcore/{generation}/begins"])
        return generation

    def _lead(self) -> int:
        generation = int(self.store.add("rlcore/generation", 1))
        answered: dict[int, bytes] = {}
        missing = list(range(1, self._size))
        until = time.monotonic() + self._seconds
        while missing:
            for rank in list(missing):
                if self.store.check([f"rlcore/{generation}/there/{rank}"]):
                    missing.remove(rank)
                elif self.store.check([f"rlcore/came/{rank}"]):
                    word = self.store.get(f"rlcore/came/{rank}")
                    if answered.get(rank) != word:
                        answered[rank] = word
                        self.store.set(f"rlcore/goes/{word.decode()}", str(generation))
            if missing and time.monotonic() > until:
                several = f"ranks {', '.join(map(str, missing))}" if len(missing) > 1 else f"rank {missing[0]}"
                raise RankLost(f"{several} of {self._size} did not come within {self._seconds:g} s", missing[0])
            time.sleep(_LOOK if missing else 0.0)
        self.store.set(f"rlcore/{generation}/begins", "")
        return generation


def _opened(process: int, fd: int, inode: int) -> int | None:
    """Open the memory that another process of this user has, if this one may."""
    try:
        memory = os.open(f"/proc/{process}/fd/{fd}", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    if os.fstat(memory).st_ino == inode:
        return memory
    os.close(memory)
    return None


def _address_of(interface: str) -> str:
    """Return the address of a network interface."""
    import fcntl
    import struct

    name = interface.split(",")[0].encode()[:15]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            answer = fcntl.ioctl(probe.fileno(), 0x8915, struct.pack("256s", name))  # SIOCGIFADDR
        except OSError as error:
            raise ConfigError(f"GLOO_SOCKET_IFNAME = {interface!r} has no address here: {error}") from error
    return socket.inet_ntoa(answer[20:24])
