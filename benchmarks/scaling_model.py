"""A model of how a step scales with the number of ranks: held against measurements, then carried to many ranks.

    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/scaling_model.py --validate 1 2 4 --to 1000
    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/scaling_model.py --validate    # what ranks tell each other alone

A step is computing and then a sum over the ranks. What a sum costs follows from two figures, which are measured with
two ranks: `a`, what a meeting of the ranks takes, and `b`, the bytes that move in a second.

* Shared memory, on one host: two ranks copy their numbers and add those of both: `a + 3m/b`. More of them do so with
  few numbers, `a + (n+1)m/b`; with many, each adds a stretch and takes the others: `2a + 3m/b`. With more ranks than
  cores, they take turns.
* A ring over hosts: `2(n-1)(a + m/(nb))`. A tree: `2 log2(n) a + 2m/b`. (Thakur, Rabenseifner and Gropp, 2005.)

Computing is measured with as many processes as there are ranks that share nothing, in the same round, so that what else
the machine does meets both alike. Deaths: of n ranks that each fail every M seconds, one fails every M/n; it costs a
restart and half of the time between two kept states.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import socket
import statistics
import time
from collections.abc import Callable
from datetime import timedelta

import torch
from bench import RESULTS, machine, spread
from rlcore_plugin_ddp.gloo import LOOPBACK, GlooGroup
from rlcore_plugin_ddp.memory import Memory
from rlcore_plugin_ddp.merging import handed_over
from rlcore_plugin_ddp.packing import pack
from rlcore_plugin_ddp.shared import SharedGroup
from rlcore_plugin_testing.processes import Processes

from rlcore.loggers.metrics import Metrics
from rlcore.training.lockstep import Collected, Lockstep
from rlcore.types import Every, Group, Progress

# layers of the network whose step is timed, and the rows of a minibatch
NETS = {"4.8k": (64, 2), "134k": (256, 3)}
ROWS = 64
INPUTS = 8
# floats from which `a` and `b` are found
SHORT, LONG = 1_000, 2_100_000
SECONDS = 1.0
# between two looks at the clock
CALLS = 50
DEADLINE = 120.0
# bytes of a sum from which on more than two ranks divide it among them
STRETCHES = 4 << 15
TABLE = (8, 64, 1000)
DAY = 86_400.0
KEYS = 20
# of the last section of the results
TOLD = "## What the ranks tell each other in an iteration"


def network(net: str) -> torch.nn.Sequential:
    """Return the network."""
    width, layers = NETS[net]
    sizes = [INPUTS, *[width] * layers]
    hidden = [part for a, b in itertools.pairwise(sizes) for part in (torch.nn.Linear(a, b), torch.nn.Tanh())]
    return torch.nn.Sequential(*hidden, torch.nn.Linear(width, 1))


def floats(net: str) -> int:
    """Return how many numbers a step sums."""
    return sum(parameter.numel() for parameter in network(net).parameters())


def step_of(net: str) -> Callable[[], torch.Tensor]:
    """Return what computes the gradients of one minibatch, as one flat tensor."""
    torch.manual_seed(0)
    model, rows = network(net), torch.randn(ROWS, INPUTS)
    parameters = list(model.parameters())

    def step() -> torch.Tensor:
        gradients = torch.autograd.grad(model(rows).square().mean(), parameters)
        return torch.cat([gradient.reshape(-1) for gradient in gradients])

    return step


def seconds_of(act: Callable[[], object], group: Group | None = None) -> float:
    """Return the mean seconds of a call over about a second; of several ranks the first says when that is over."""
    act()
    calls, began = 0, time.perf_counter()
    while True:
        for _ in range(CALLS):
            act()
        calls += CALLS
        took = time.perf_counter() - began
        over = took > SECONDS
        if over if group is None else group.share([over])[0][0]:
            return took / calls


def in_shared_memory(size: int, act: Callable[[Group], float]) -> float:
    """Return what rank 0 finds in a group over shared memory."""

    def rank(number: int) -> float:
        torch.set_num_threads(1)
        spin = size <= len(os.sched_getaffinity(0))
        group = SharedGroup(Memory(memory.fd, size, 1, number, DEADLINE, spin))
        found = act(group)
        group.barrier()
        return found

    with Memory.create(size) as memory:
        return float(Processes(size, rank).results()[0])


def over_gloo(act: Callable[[Group], float]) -> float:
    """Return what rank 0 of two finds in a group over sockets of this host."""
    with socket.create_server((LOOPBACK, 0)) as server:
        port, listener = server.getsockname()[1], server.fileno()

        def rank(number: int) -> float:
            torch.set_num_threads(1)
            own, wait = None if number else listener, timedelta(seconds=DEADLINE)
            store = torch.distributed.TCPStore(LOOPBACK, port, None, not number, wait, False, master_listen_fd=own)
            group = GlooGroup(store, number, 2, deadline=DEADLINE)
            found = act(group)
            group.barrier()
            return found

        return float(Processes(2, rank).results()[0])


def sum_seconds(length: int) -> Callable[[Group], float]:
    """Return what times the sum of so many floats."""

    def act(group: Group) -> float:
        flat = torch.zeros(length)
        return seconds_of(lambda: group.sum_(flat), group)

    return act


def fitted(short: float, long: float, passes: int) -> tuple[float, float]:
    """Return `a` in seconds and `b` in bytes per second."""
    b = passes * 4 * (LONG - SHORT) / (long - short)
    return max(short - passes * 4 * SHORT / b, 0.0), b


def shared_sum(n: int, m: int, a: float, b: float) -> float:
    """Return the seconds of a sum of m bytes over n ranks of one host."""
    if n == 1:
        return 0.0
    turns = max(1.0, n / len(os.sched_getaffinity(0)))
    stretches = n > 2 and m >= STRETCHES
    return turns * ((2 * a + 3 * m / b) if stretches else (a + (n + 1) * m / b))


def ring(n: int, m: int, a: float, b: float) -> float:
    """Return the seconds of a sum of m bytes over n hosts in a ring."""
    return 2 * (n - 1) * (a + m / (n * b))


def tree(n: int, m: int, a: float, b: float) -> float:
    """Return the seconds of a sum of m bytes over n hosts in a tree."""
    return 2 * math.log2(n) * a + 2 * m / b


def goodput(n: int, days: float, restart: float, between: float) -> float:
    """Return the share of the time that is not lost to deaths.

    Args:
        n: ranks.
        days: between two failures of one rank.
        restart: seconds until all ranks train again.
        between: seconds between two states from which they go on.
    """
    return 1.0 / (1.0 + n / (days * DAY) * (restart + between / 2))


def validate(counts: list[int], net: str, rounds: int) -> tuple[list[str], tuple[float, float], tuple[float, float]]:
    """Return rows of predicted and measured steps, and `a` and `b` of shared memory and of gloo."""
    shared: list[tuple[float, float]] = []
    gloo: list[tuple[float, float]] = []
    steps: dict[int, list[tuple[float, float]]] = {n: [] for n in counts}

    def unsynchronised(number: int) -> float:
        torch.set_num_threads(1)
        return seconds_of(step_of(net))

    def synchronised(group: Group) -> float:
        step = step_of(net)
        return seconds_of(lambda: group.sum_(step()), group)

    for _ in range(rounds):
        ends = [in_shared_memory(2, sum_seconds(length)) for length in (SHORT, LONG)]
        shared.append(fitted(ends[0], ends[1], 3))
        ends = [over_gloo(sum_seconds(length)) for length in (SHORT, LONG)]
        gloo.append(fitted(ends[0], ends[1], 2))
        for n in counts:
            alone = statistics.mean(Processes(n, unsynchronised).results())
            steps[n].append((alone, in_shared_memory(n, synchronised)))
    a, b = (statistics.median(values) for values in zip(*shared, strict=True))
    rows = []
    for n in counts:
        m = 4 * floats(net)
        alone, measured = (statistics.median(values) for values in zip(*steps[n], strict=True))
        predicted = alone + shared_sum(n, m, a, b)
        ratios = [found / (own + shared_sum(n, m, *fit)) for (own, found), fit in zip(steps[n], shared, strict=True)]
        rows.append(
            f"| {net} | {n} | {1e3 * alone:.2f} | {1e3 * predicted:.2f} | {1e3 * measured:.2f} | {spread(ratios)} |"
        )
    second = tuple(statistics.median(values) for values in zip(*gloo, strict=True))
    return rows, (a, b), (second[0], second[1])


class Pretended:
    """A rank that says what it has to, and waits for nobody.

    Args:
        memory: as this rank sees it.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def say(self, kind: str, content: bytes, nbytes: int) -> None:
        """Make a call, of which each rank hands over at most so many bytes."""
        memory = self._memory
        room, size = memory.part(nbytes)
        begin = (memory.begin(kind, nbytes) * memory.size + memory.rank) * size
        room[begin : begin + len(content)] = content
        memory.meet()


class _Hurried(Memory):
    """Counts its calls, and goes on."""

    def __init__(self, *args: int) -> None:
        super().__init__(*args)
        self._others = []


def clocks() -> tuple[float, float]:
    """Return the time of the clock and that of the processor, in milliseconds: others take turns with this process."""
    return 1e3 * time.perf_counter(), 1e3 * time.process_time()


def since(began: tuple[float, float]) -> tuple[float, float]:
    """Return how much of both has passed."""
    now = clocks()
    return now[0] - began[0], now[1] - began[1]


def control_plane(size: int, times: int) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """Return the times in which ranks of one process exchange their numbers, and in which their metrics are merged."""
    with Memory.create(size) as made:
        pretended = [Pretended(_Hurried(made.fd, size, 1, rank)) for rank in range(1, size)]
        group = SharedGroup(Memory(made.fd, size, 1, 0, DEADLINE))
        lockstep, own = Lockstep(group), Collected(64, 1, 0, 0, 1_000_000, 0)
        numbers = b"".join(int(number).to_bytes(8, "little") for number in own)
        figures = {
            f"train/number-{key}": (16, 0.5123456789, 2.0123456789, -1.0123456789, 1.0123456789) for key in range(KEYS)
        }
        content = bytes(pack(*handed_over(figures, {})))
        exchanged, merged = [], []
        for number in range(times):
            began = clocks()
            for rank in pretended:
                rank.say("share", numbers, len(numbers))
            agreed = lockstep.agree(own)
            exchanged.append(since(began))
            assert agreed.steps == 64 * size, agreed
            metrics = Metrics(Every(1), (), group)
            for key in figures:
                metrics.extend(key, [0.5] * 16)
            lengths = len(content).to_bytes(8, "little")
            began = clocks()
            for rank in pretended:
                rank.say("gather", lengths, 8)
                rank.say("gather", content, len(content))
            metrics.write(Progress(1_000_000, frames=64 * (number + 1)))
            merged.append(since(began))
            assert metrics.latest["train/number-0/count"] == 16 * size, metrics.latest
    return exchanged, merged


def table(net: str, compute: float, gloo: tuple[float, float], most: int) -> list[str]:
    """Return rows for many ranks, each on a host of its own."""
    a, b = gloo
    m = 4 * floats(net)
    rows = []
    for n in sorted({*(count for count in TABLE if count <= most), most}):
        by_ring, by_tree = ring(n, m, a, b), tree(n, m, a, b)
        shares = [compute / (compute + seconds) for seconds in (by_ring, by_tree)]
        rows.append(f"| {n:,} | {1e3 * by_ring:.1f} / {1e3 * by_tree:.1f} | {shares[0]:.2f} / {shares[1]:.2f} |")
    return rows


def losses(most: int) -> list[str]:
    """Return rows of what deaths cost."""
    rows = []
    for days in (30, 7, 1):
        lost = [1 - goodput(most, days, 30, between) for between in (5, 600)]
        rows.append(f"| {days} | {100 * lost[0]:.1f} % | {100 * lost[1]:.1f} % |")
    return rows


def told(size: int) -> str:
    """Return what the ranks tell each other, timed, as Markdown."""
    exchanged, merged = control_plane(size, 20)
    rows = [
        f"| {what} | {spread(processor, '{:.1f}')} | {spread(clock, '{:.1f}')} |"
        for what, times in (("exchange and agree", exchanged), (f"merge {KEYS} metrics, when a row is due", merged))
        for clock, processor in [zip(*times, strict=True)]
    ]
    return (
        f"{TOLD}, {size:,} of them in one process\n\n"
        f"Load {os.getloadavg()[0]:.1f} at the end.\n\n"
        "| what | ms of the processor | ms of the clock |\n|---|---|---|\n" + "\n".join(rows) + "\n"
    )


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--validate", nargs="*", type=int, default=[1, 2, 4])
    parser.add_argument("--to", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--compute", type=float, default=10.0, help="milliseconds of computing in a step of the table")
    args = parser.parse_args()
    file, said = RESULTS / "scaling-model.md", told(args.to)
    if not args.validate:  # the rest stays as it was measured
        text = file.read_text().partition(TOLD)[0] + said
    else:
        text = f"{model(args)}\n\n{said}"
    print(text)
    file.write_text(text)


def model(args: argparse.Namespace) -> str:
    """Return the model, held against measurements and carried on, as Markdown."""
    rows: list[str] = []
    for net in NETS:
        found, shared, gloo = validate(args.validate, net, args.rounds)
        rows += found
    return (
        f"# Model of scaling\n\n{machine()}; load {os.getloadavg()[0]:.1f} at the end. Medians of {args.rounds} "
        "rounds.\n\n"
        f"Shared memory: a = {1e6 * shared[0]:.0f} us, b = {shared[1] / 1e9:.2f} GB/s. gloo over loopback: a = "
        f"{1e6 * gloo[0]:.0f} us, b = {gloo[1] / 1e9:.2f} GB/s.\n\n"
        "## Held against measurements, over shared memory\n\n"
        "| net | ranks | computing, ms | step of the model, ms | measured, ms | measured / model, by round |\n"
        "|---|---|---|---|---|---|\n" + "\n".join(rows) + "\n\n"
        f"## Carried to {args.to:,} hosts, over gloo with these figures, {args.compute:g} ms of computing, 134k "
        "numbers\n\n"
        "| hosts | sum, ring / tree, ms | share of computing, ring / tree |\n|---|---|---|\n"
        + "\n".join(table("134k", args.compute / 1e3, gloo, args.to))
        + f"\n\n## Lost to deaths with {args.to:,} ranks, 30 s for a restart\n\n"
        "| days between failures of one rank | states kept every 5 s | every 10 minutes |\n|---|---|---|\n"
        + "\n".join(losses(args.to))
    )


if __name__ == "__main__":
    main()
