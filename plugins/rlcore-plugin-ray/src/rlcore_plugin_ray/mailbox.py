"""A mailbox in a store of torch.distributed, which listens on one address; nothing in it is pickled."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

import torch.distributed

from rlcore.errors import RankLost

_distributed: Final[Any] = torch.distributed  # its stores have no types
# bytes of one entry of the store, which takes no more than 8 MiB
_PIECE: Final = 4 << 20
_LENGTH: Final = 8


def serve_store(address: str, seconds: float) -> Any:
    """Return a store that this process serves at a free port of an address.

    Args:
        address: of this host; the store listens on no other.
        seconds: that an answer may take.
    """
    with socket.create_server((address, 0)) as listener:
        port = listener.getsockname()[1]
        # torch's own listener would be on every address
        return _distributed.TCPStore(
            address, port, None, True, timedelta(seconds=seconds), False, master_listen_fd=os.dup(listener.fileno())
        )


def reach_store(address: str, port: int, seconds: float) -> Any:
    """Return a store that another process serves.

    Raises:
        RankLost: it does not answer.
    """
    try:
        return _distributed.TCPStore(address, port, None, False, timedelta(seconds=seconds), False)
    except RuntimeError as error:
        raise RankLost(f"the process that watches over the ranks does not answer at {address}:{port}") from error


class StoreMailbox:
    """The latest content by name, in the entries of a store.

    What fits into one entry is replaced at once. What does not lies in several: it must have been taken before other
    content comes in its place.

    Args:
        store: a `torch.distributed.Store`.
    """

    def __init__(self, store: Any) -> None:
        self._store = _distributed.PrefixStore("mailbox", store)
        self._lock = threading.Lock()

    def put(self, name: str, content: bytes) -> None:
        """Write the content of a name, in place of the one before."""
        pieces = [content[begin : begin + _PIECE] for begin in range(0, len(content), _PIECE)] or [b""]
        with self._lock, _naming_the_end():
            for number, piece in enumerate(pieces[1:], start=1):
                self._store.set(f"{name}/{number}", piece)
            self._store.set(name, len(pieces).to_bytes(_LENGTH, "little") + pieces[0])

    def get(self, name: str) -> bytes | None:
        """Return the content of a name; None where nobody has written it."""
        with self._lock, _naming_the_end():
            found = self._found(name)
        return None if found is None else b"".join(found)

    def take(self, name: str) -> bytes | None:
        """Return the content of a name, and forget it; None where nobody has written it."""
        with self._lock, _naming_the_end():
            found = self._found(name)
            if found is None:
                return None
            for number in range(1, len(found)):
                self._store.delete_key(f"{name}/{number}")
            self._store.delete_key(name)
        return b"".join(found)

    def _found(self, name: str) -> list[bytes] | None:
        if not self._store.check([name]):
            return None
        first = self._store.get(name)
        count = int.from_bytes(first[:_LENGTH], "little")
        return [first[_LENGTH:], *(self._store.get(f"{name}/{number}") for number in range(1, count))]


@contextmanager
def _naming_the_end() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise RankLost("the process that watches over the ranks does not answer") from error
