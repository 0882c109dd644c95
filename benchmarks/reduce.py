"""The sum over ranks alone, by each way of connecting them.

    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/reduce.py

Each round takes every way in turn, so that what else the machine does meets all of them alike. Figures are medians over
the rounds, with the range, of the mean time of one sum on rank 0. The last column compares within each round.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager

import torch
from rlcore_plugin_ddp.gloo import LOOPBACK, GlooGroup
from rlcore_plugin_ddp.memory import Memory
from rlcore_plugin_ddp.shared import SharedGroup
from rlcore_plugin_testing.processes import Processes

from rlcore.types import Group

LENGTHS = {"9k": 9_157, "269k": 268_802, "2.1M": 2_100_000, "11M": 11_000_000}
# seconds of sums in one round, at least three of them
SECONDS = 0.5
DEADLINE = 120.0


@contextmanager
def shared(size: int):
    """Yield what makes the group over shared memory."""
    with Memory.create(size) as memory:
        spin = size <= len(os.sched_getaffinity(0))
        yield lambda rank: SharedGroup(Memory(memory.fd, size, 1, rank, DEADLINE, spin))


@contextmanager
def gloo(size: int):
    """Yield what makes the group over sockets, which wait as torch.distributed does."""
    distributed = torch.distributed
    with socket.create_server((LOOPBACK, 0)) as server:
        port, listener = server.getsockname()[1], server.fileno()

        def enter(rank: int) -> Group:
            own = None if rank else listener
            store = distributed.TCPStore(LOOPBACK, port, None, not rank, wait_for_workers=False, master_listen_fd=own)
            return GlooGroup(store, rank, size, deadline=DEADLINE)

        yield enter


WAYS: dict[str, Callable[[int], AbstractContextManager[Callable[[int], Group]]]] = {"shared": shared, "gloo": gloo}


def microseconds(way: str, size: int, length: int) -> float:
    """Return the mean time of a sum on rank 0, in fresh processes."""

    def act(rank: int) -> float:
        torch.set_num_threads(1)
        group = enter(rank)
        flat = torch.zeros(length)
        group.sum_(flat)
        began = time.perf_counter()
        group.sum_(flat)
        (count,), *_ = group.share([max(3, int(SECONDS / (time.perf_counter() - began)))])
        group.barrier()
        began = time.perf_counter()
        for _ in range(count):
            group.sum_(flat)
        took = (time.perf_counter() - began) / count
        group.barrier()
        return took * 1e6

    with WAYS[way](size) as enter:
        return Processes(size, act).results()[0]


def shown(values: list[float]) -> str:
    """Return the median and the range."""
    return f"{statistics.median(values):,.0f} ({min(values):,.0f} to {max(values):,.0f})"


def main() -> None:
    """Print a table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--ranks", nargs="+", type=int, default=[2, 4])
    parser.add_argument("--lengths", nargs="+", default=list(LENGTHS), choices=list(LENGTHS))
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    first = options.ways[0]
    last = options.ways[-1]
    print(f"| ranks | floats | {' | '.join(f'{way}, us' for way in options.ways)} | {first} / {last} |")
    print("|---" * (3 + len(options.ways)) + "|")
    for size in options.ranks:
        for length in options.lengths:
            rounds = [
                {way: microseconds(way, size, LENGTHS[length]) for way in options.ways} for _ in range(options.rounds)
            ]
            figures = " | ".join(shown([times[way] for times in rounds]) for way in options.ways)
            ratio = statistics.median(times[first] / times[last] for times in rounds)
            print(f"| {size} | {length} | {figures} | {ratio:.2f} |", flush=True)
    print(f"\nLoad of the machine at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.")


if __name__ == "__main__":
    main()
