"""A group of ranks that torch.distributed connects: sockets of gloo, and NCCL for what is on CUDA.

Of torch.distributed only the process groups are used; the default group of the process stays as it is.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, Self

import torch.distributed
from torch import Tensor

from rlcore.errors import RankLost, RlcoreError
from rlcore.types import Group
from rlcore_plugin_ddp.memory import Memory, nap
from rlcore_plugin_ddp.moving import Moves
from rlcore_plugin_ddp.packing import pack, unpack

LOOPBACK: Final = "127.0.0.1"
_JOIN: Final = "join"
# of a call, where something else finds out who is lost
_NEVER: Final = timedelta(days=365)
# seconds for which a rank that waits offers the processor to others before it sleeps
_SPIN: Final = 500e-6

_distributed: Final[Any] = torch.distributed  # its process groups have no types


class GlooGroup(Group):
    """Ranks that are connected by sockets, each bound to one address.

    With a memory that all of them share, those of one host, the ranks first meet in it: so they see who is lost, and
    who makes another call. With `moves` they see that too, later. Without either, a lost rank is known by name only if
    there are two; and a rank that moves but makes no call for the deadline is taken for lost.

    Args:
        store: a `torch.distributed.Store`, where the ranks find each other's addresses.
        rank: number of this process, from 0.
        size: how many there are.
        generation: how often ranks were started for this run, this time included.
        deadline: seconds that a call may take.
        address: of this host, at which the others reach this rank.
        memory: that all ranks share.
        moves: what the ranks say of themselves, where they share no memory.

    Attributes:
        rank: number of this process, from 0.
        size: how many there are.
        generation: how often ranks were started for this run, this time included.

    Raises:
        RankLost: not all ranks have come within the deadline.
    """

    def __init__(
        self,
        store: Any,
        rank: int,
        size: int,
        generation: int = 1,
        deadline: float = 60.0,
        address: str = LOOPBACK,
        memory: Memory | None = None,
        moves: Moves | None = None,
    ) -> None:
        self.rank = rank
        self.size = size
        self.generation = generation
        self._store = _distributed.PrefixStore(f"rlcore/{generation}", store)
        self._deadline = timedelta(seconds=deadline)
        self._memory = memory
        self._moves = moves
        options = _distributed.ProcessGroupGloo._Options()
        options._devices = [_distributed.ProcessGroupGloo.create_device(hostname=address)]
        options._timeout = self._deadline
        try:
            self._gloo = _distributed.ProcessGroupGloo(self._store, rank, size, options)
        except RuntimeError as error:
            raise self._lost(error, _JOIN) from error
        if moves is not None:  # they know better than a clock
            self._gloo._set_default_timeout(_NEVER)
        self._nccl: Any = None

    @classmethod
    def on_one_host(cls, memory: Memory, port: int, listener: int | None = None, address: str = LOOPBACK) -> Self:
        """Return the group of the ranks that share a memory.

        Args:
            memory: that they share.
            port: at which rank 0 tells the others where everybody is.
            listener: for rank 0, the file descriptor of a socket that listens at this port; whoever starts the ranks
                makes it by `socket.create_server((address, 0))`, as torch's own would listen on every address.
            address: at which all of them are bound.
        """
        first, seconds = memory.rank == 0, timedelta(seconds=memory.deadline)
        store = _distributed.TCPStore(
            address, port, None, first, seconds, False, master_listen_fd=listener if first else None
        )
        return cls(store, memory.rank, memory.size, memory.generation, memory.deadline, address, memory)

    def sum_(self, flat: Tensor) -> None:
        """Replace a flat tensor by its sum over the ranks: on the CPU by gloo, on CUDA by NCCL."""
        connected = self._gloo if flat.device.type == "cpu" else self._on_device(flat.device)
        self._call("sum_", flat.nbytes, lambda: connected.allreduce([flat]))

    def share(self, numbers: Sequence[int]) -> Sequence[Sequence[int]]:
        """Return the numbers of every rank."""
        return [every.tolist() for every in self._all("share", torch.tensor(numbers, dtype=torch.int64))]

    def gather(self, tree: Any, tensors: Mapping[str, Tensor] | None = None) -> Sequence[tuple[Any, dict[str, Tensor]]]:
        """Return the tree and the tensors of every rank, on rank 0."""
        packed = pack(tree, tensors or {})
        lengths = [int(length) for length in self._all("gather", torch.tensor([len(packed)]))]
        padded = torch.zeros(max(lengths), dtype=torch.uint8)
        padded[: len(packed)] = torch.frombuffer(packed, dtype=torch.uint8)
        every = [] if self.rank else [torch.empty_like(padded) for _ in range(self.size)]
        first = _distributed.GatherOptions()
        first.rootRank = 0
        self._call("gather", len(padded), lambda: self._gloo.gather([every] if every else [], [padded], first))
        return [unpack(one[:length].numpy().tobytes()) for one, length in zip(every, lengths, strict=False)]

    def barrier(self) -> None:
        """Wait until every rank calls this."""
        self._call("barrier", 0, self._gloo.barrier)

    def beat(self) -> None:
        """Say that this rank moves although it makes no call."""
        if self._memory is not None:
            self._memory.beat()
        elif self._moves is not None:
            self._moves.beat()

    def gone(self) -> RankLost | None:
        """Return the loss that can be known without a call."""
        if self._memory is not None:
            return self._memory.gone()
        return None if self._moves is None else self._moves.lost

    def _all(self, kind: str, tensor: Tensor) -> list[Tensor]:
        every = [torch.empty_like(tensor) for _ in range(self.size)]
        self._call(kind, tensor.nbytes, lambda: self._gloo.allgather([every], [tensor]))
        return every

    def _call(self, kind: str, nbytes: int, begin: Callable[[], Any]) -> None:
        """Do what every rank does, and wait until it is done."""
        if self._memory is not None:
            self._memory.begin(kind, nbytes)
            self._memory.meet()
        elif self._moves is not None:
            self._moves.begin(f"{kind} with {nbytes} bytes")
        try:
            work = begin()
            if self._memory is not None:
                _watch(work, self._memory.check)  # of those that are connected in a ring, only the next sees who ended
            elif self._moves is not None:
                self._watch_moves(work, self._moves)
            work.wait()
        except RuntimeError as error:
            if isinstance(error, RlcoreError):
                raise
            raise self._lost(error, kind) from error

    def _watch_moves(self, work: Any, moves: Moves) -> None:
        """Wait for the end of a call, as long as the ranks move."""
        try:
            _watch(work, moves.watch().look)
        except RlcoreError:
            # it would wait for its threads at its own end, and they wait for a rank that never comes
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._gloo))
            raise

    def _lost(self, error: RuntimeError, kind: str) -> RlcoreError:
        """Return the error that names the rank that is lost, if that can be known."""
        if self._moves is not None and kind != _JOIN:
            return self._moves.broken(str(error).partition(". ")[0])
        if self._memory is not None and (gone := self._memory.gone()) is not None:
            return gone
        other = 1 - self.rank if self.size == 2 else None
        if self._memory is not None:
            self._memory.end(other)
        who = "a rank" if other is None else f"rank {other}"
        return RankLost(f"{who} of {self.size} is lost; rank {self.rank} is in {kind}: {error}", other)

    def _on_device(self, device: torch.device) -> Any:
        if self._nccl is None:
            torch.cuda.set_device(device)
            options = _distributed.ProcessGroupNCCL.Options()
            options._timeout = self._deadline
            self._nccl = _distributed.ProcessGroupNCCL(
                _distributed.PrefixStore("nccl", self._store), self.rank, self.size, options
            )
        return self._nccl


def _watch(work: Any, look: Callable[[], None]) -> None:
    """Wait for the end of a call, and look again and again whether it can end.

    Ranks that only offered the processor would take turns with each other, and let gloo's threads wait.
    """
    began = time.monotonic()
    while not work.is_completed():
        waited = time.monotonic() - began
        if waited < _SPIN:
            os.sched_yield()
            continue
        time.sleep(nap(waited))
        look()
