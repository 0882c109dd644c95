"""Copies of the state of a rank in memory that outlives it, from which the next generation of ranks goes on."""

from __future__ import annotations

import json
import mmap
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import torch

from rlcore.state import LastGoodState, Snapshot, bytes_of, dtype_of
from rlcore_plugin_ddp.ranks.board import RankBoard

if TYPE_CHECKING:
    from torch import Tensor

_ALIGNED: Final = 64
_LENGTH: Final = 8


class KeptStates(LastGoodState):
    """Keeps the states of a rank in the memory of its supervisor, in two places in turn.

    All ranks keep at the same frames, as the first one says; so each has one that the others have too, even while it
    writes the next one.

    Args:
        board: where the places are.
        rank: of this process.
        place: to begin with.
        every: seconds between two states at least, for those who fetch them from there.
    """

    def __init__(self, board: RankBoard, rank: int, place: int, every: float = 0.0) -> None:
        super().__init__()
        self._every = every
        self._board = board
        self._rank = rank
        self._place = place
        self._maps: dict[int, mmap.mmap] = {}

    def keep(self, take: Callable[[], Snapshot]) -> None:
        """Keep a copy of what `take` returns, unless that is too large."""
        super().keep(take)
        self._next = max(self._next, time.monotonic() + self._every)

    def hold(self, snapshot: Snapshot) -> None:
        """Copy a state into the place that is due."""
        place, self._place = self._place, 1 - self._place
        self._board.keeps(self._rank, place, None)
        head, pieces = _described(snapshot)
        begin = _aligned(_LENGTH + len(head))
        room = self._room(place, begin + sum(_aligned(piece.nbytes) for piece in pieces))
        room[:_LENGTH] = len(head).to_bytes(_LENGTH, "little")
        room[_LENGTH : _LENGTH + len(head)] = head
        for piece in pieces:
            room[begin : begin + piece.nbytes] = memoryview(bytes_of(piece))
            begin += _aligned(piece.nbytes)
        self._board.keeps(self._rank, place, snapshot.reached)

    def _room(self, place: int, nbytes: int) -> mmap.mmap:
        """Return the memory of a place, which grows as states do."""
        room = self._maps.get(place)
        if room is None or len(room) < nbytes:
            fd = self._board.place(self._rank, place)
            size = max(os.fstat(fd).st_size, nbytes * 5 // 4)
            os.truncate(fd, size)
            room = self._maps[place] = mmap.mmap(fd, size)
        return room


def read_kept(board: RankBoard, rank: int, place: int) -> Snapshot:
    """Return the state that a rank before this one kept in a place."""
    with mmap.mmap(board.place(rank, place), 0) as room:
        end = _LENGTH + int.from_bytes(room[:_LENGTH], "little")
        head = json.loads(room[_LENGTH:end])
        begin, tensors = _aligned(end), {}
        for name, dtype, shape in head["tensors"]:
            tensor = tensors[name] = torch.empty(shape, dtype=dtype_of(dtype))
            memory = bytes_of(tensor)
            memory[:] = memoryview(room[begin : begin + tensor.nbytes])
            begin += _aligned(tensor.nbytes)
    return Snapshot.read(head["tree"], tensors, head["progress"], head["evaluation"])


def _described(snapshot: Snapshot) -> tuple[bytes, list[Tensor]]:
    """Return what says how to read a state, and its tensors as they lie in memory."""
    plain = {
        name: tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
        for name, tensor in snapshot.tensors.items()
    }
    forms = [(name, str(tensor.dtype).removeprefix("torch."), list(tensor.shape)) for name, tensor in plain.items()]
    head: dict[str, Any] = {
        "tree": snapshot.tree,
        "progress": snapshot.progress,
        "evaluation": snapshot.evaluation,
        "tensors": forms,
    }
    return json.dumps(head).encode(), list(plain.values())


def _aligned(nbytes: int) -> int:
    return -(-nbytes // _ALIGNED) * _ALIGNED
