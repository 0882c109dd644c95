"""What the ranks of a test do with their group, and what can be seen of their processes."""

from __future__ import annotations

import hashlib
import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from rlcore.errors import RankLost, RlcoreError
from rlcore.types import Group

# of 64 bits
LARGEST: Final = 2**63 - 1


class Sums:
    """Sums tensors of several lengths in turn, at random moments."""

    def __init__(self, group: Group, parts: list[list[Tensor]]) -> None:
        self._group = group
        self._own = [several[group.rank] for several in parts]
        self._chance = random.Random(group.rank)

    def digests(self) -> list[str]:
        """Return the hashes of the sums."""
        found = []
        for own in self._own:
            flat = own.clone()
            if self._chance.random() < 0.3:
                time.sleep(self._chance.random() * 1e-3)
            self._group.sum_(flat)
            found.append(bits_of(flat))
        return found


def entered(enter: Callable[[int], Group], rank: int) -> Group:
    """Return the group of this process, a copy of that of the test."""
    torch.set_num_threads(1)  # the threads of the process that this one is a copy of are not there
    return enter(rank)


def everything(group: Group) -> dict[str, Any]:
    """Return what a rank finds in calls that are no trouble."""
    bad = group.rank == group.size - 1
    few: tuple[list[int], ...] = ([group.rank, -group.rank], [LARGEST, -LARGEST - 1], [], [group.rank] * 700)
    return {
        "is": [group.rank, group.size, group.generation],
        "sum": _summed(group, [2.0**group.rank, 1.0]),
        "not finite": _summed(group, [float("nan") if bad else 1.0, float("inf") if bad else 1.0, 1.0]),
        "shared": [[list(numbers) for numbers in group.share(own)] for own in few],
        "gathered": [described(*one) for one in group.gather(*belongings(group.rank))],
    }


def bits_of(tensor: Tensor) -> str:
    """Return a hash of the elements of a tensor."""
    return hashlib.blake2b(tensor.contiguous().view(-1).view(torch.uint8).numpy().data, digest_size=8).hexdigest()


def numbers_of(rank: int, length: int) -> Tensor:
    """Return what a rank adds to a sum: numbers of very different sizes."""
    generator = torch.Generator().manual_seed(rank)
    return torch.randn(length, generator=generator) * 10.0 ** torch.randint(-3, 4, (length,), generator=generator)


def _summed(group: Group, numbers: list[float]) -> list[float]:
    flat = torch.tensor(numbers)
    group.sum_(flat)
    return flat.tolist()


def belongings(rank: int) -> tuple[Any, dict[str, Tensor]]:
    """Return what a rank has: nothing, or more the higher its number."""
    if rank == 1:
        return None, {}
    tree = {"rank": rank, "nested": [1.5, "text", None, {"of": rank}], **{f"own/{rank}": True}}
    tensors = {
        "rows": torch.arange(3 * rank).reshape(rank, 3),
        f"bits/{rank}": torch.tensor(rank / 3, dtype=torch.bfloat16),
        "flags": torch.tensor([True, False]),
        "doubles": torch.full((rank, 2), 1 / 3, dtype=torch.float64).t(),
    }
    return tree, tensors


def described(tree: Any, tensors: dict[str, Tensor]) -> list[Any]:
    """Return a tree and tensors as JSON."""
    return [tree, {name: [str(tensor.dtype), list(tensor.shape), bits_of(tensor)] for name, tensor in tensors.items()}]


def call(group: Group, kind: str) -> None:
    """Call one of the methods of a group."""
    if kind == "sum_":
        group.sum_(torch.ones(2000))
    elif kind == "share":
        group.share((group.rank, 2))
    elif kind == "gather":
        group.gather({"rank": group.rank}, {"rows": torch.ones(group.rank)})
    else:
        group.barrier()


def loss_seen(group: Group, kind: str) -> list[Any] | None:
    """Return the rank that a call finds lost, and the seconds that this took; None if it finds none."""
    began = time.monotonic()
    try:
        call(group, kind)
    except RankLost as lost:
        return [lost.rank, time.monotonic() - began]
    return None


def refusal(enter: Callable[[int], Group], rank: int) -> str | None:
    """Return what a rank that comes late is told; None if it is let in."""
    try:
        entered(enter, rank)
    except RlcoreError as error:
        return str(error)
    return None


def listening() -> set[str]:
    """Return the addresses at which sockets of this process listen."""
    own = {os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if _is_open(fd)}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if state == "0A" and f"socket:[{rest[5]}]" in own:
                found.add(local.partition(":")[0])
    return found


def _is_open(fd: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{fd}")


def named_memory() -> set[str]:
    """Return the files in memory that this process sees."""
    names = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines()}
    return {name for name in names if name.startswith("/dev/shm")}


def children() -> list[str]:
    """Return the processes that this one has started."""
    return Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split()
