"""What an update of offline learning costs, and what opening a dataset costs.

    python benchmarks/offline.py --torchrl-python .venv-peers/bin/python --d3rlpy-python .venv-model/bin/python
    python benchmarks/offline.py --only open

Updates per second of IQL, CQL and TD3+BC with two hidden layers of 256 and minibatches of 256, on made-up transitions
with observations of 17 numbers and actions of 6: a run of rlcore, eager and compiled, beside the same updates written
by hand in plain torch, and beside TorchRL's losses and d3rlpy's `fit`. One thread; processes take turns, and a ratio is
that of two processes of one round. Whole, the table is also written to results/. Opening is that of a million such
steps, beside reading their file with h5py; memory is the most of the process, above what it has after its imports. A
figure only counts against another of the same run; the load of the machine is printed with them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench import RESULTS, machine, spread

OBSERVED, ACTIONS, EPISODE = 17, 6, 1_000
ALGORITHMS = ("iql", "cql", "td3-bc")
UPDATES = {"iql": 1_000, "cql": 100, "td3-bc": 1_000}
WARM = 60


def write_data(folder: Path, steps: int) -> None:
    """Write a dataset of so many steps."""
    import numpy as np
    from gymnasium.spaces import Box
    from rlcore_plugin_datasets.dataset import write_dataset
    from rlcore_plugin_datasets.episode import Episode

    draw = np.random.default_rng(0)
    last = np.arange(EPISODE) == EPISODE - 1

    def episodes() -> Any:
        for _ in range(steps // EPISODE):
            seen = draw.standard_normal((EPISODE + 1, OBSERVED), dtype=np.float32)
            taken = draw.uniform(-0.9, 0.9, (EPISODE, ACTIONS)).astype(np.float32)
            yield Episode(seen, taken, draw.standard_normal(EPISODE), last & False, last)

    spaces = (Box(-np.inf, np.inf, (OBSERVED,), np.float32), Box(-1.0, 1.0, (ACTIONS,), np.float32))
    write_dataset(folder, spaces, episodes(), {})


def config(algorithm: str, data: str, updates: int, compiled: bool) -> dict[str, Any]:
    """Return the config of a run."""
    adam = {"use": "adam", "lr": 3e-4}
    stochastic = {"use": "sac:actor-critic", "hidden": [256, 256]}
    parts = {
        "iql": ({"use": "offline:iql", "hidden": [256, 256]}, [adam]),
        "cql": (stochastic, [adam]),
        "td3-bc": (
            {**stochastic, "actor": "deterministic"},
            [
                {**adam, "name": "critics", "parameters": ["critics"], "losses": ["loss_critics"]},
                {**adam, "name": "actor", "parameters": ["actor"], "losses": ["loss_actor"], "every": 2},
            ],
        ),
    }
    model, optimizers = parts[algorithm]
    return {
        "run": {"name": "speed", "seed": 1, "total_updates": updates, "device": "cpu"},
        "model": model,
        "loss": {"use": f"offline:{algorithm}"},
        "optimizer": optimizers,
        "buffer": {"use": "datasets:dataset", "path": data, "updates_per_iteration": 20},
        "learner": {"compile": compiled},
        "metrics": {"every": 1_000},
    }


def time_rlcore(algorithm: str, data: str, compiled: bool) -> float:
    """Return updates per second of a run, after those in which it is compiled."""
    import rlcore

    total = WARM + UPDATES[algorithm]
    trainer = rlcore.build(rlcore.load_config(config(algorithm, data, total, compiled)), write=False).trainer
    began, before = 0.0, 0
    for progress in trainer:
        if not began and progress.updates >= WARM:
            began, before = time.perf_counter(), progress.updates
    return (progress.updates - before) / (time.perf_counter() - began)


def time_bare(algorithm: str, data: str, compiled: bool) -> float:
    """Return updates per second of the hand-written update."""
    import torch

    sys.path.insert(0, str(Path(__file__).with_name("speed")))
    from bare_offline import updating

    torch.set_num_threads(1)
    rows = torch.randn(100_000, 2 * OBSERVED + ACTIONS + 2).clamp(-0.9, 0.9)
    rows[:, -1] = 0
    once = updating(algorithm, rows, OBSERVED, ACTIONS, compiled)
    for number in range(WARM):
        once(number)
    began = time.perf_counter()
    for number in range(UPDATES[algorithm]):
        once(number)
    return UPDATES[algorithm] / (time.perf_counter() - began)


def open_data(kind: str, data: str, compiled: bool) -> float:
    """Return how many times as long as reading the file it takes to open it for training; print the memory.

    Args:
        kind: the storage of the rows, `device` or `memmap`.
        data: the folder.
        compiled: matters nothing here.
    """
    import h5py

    import rlcore

    def build(path: str) -> None:
        sections = config("iql", path, 1, False)
        sections["buffer"]["storage"] = kind
        rlcore.build(rlcore.load_config(sections), write=False)

    with tempfile.TemporaryDirectory() as folder:  # imports everything
        write_data(Path(folder) / "little", EPISODE)
        build(f"{folder}/little")
    file = Path(data) / "main_data.hdf5"
    began = time.perf_counter()
    with h5py.File(file) as stream:
        for group in stream.values():
            for array in group.values():
                array[()]
    read = time.perf_counter() - began
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    began = time.perf_counter()
    build(data)
    opened = time.perf_counter() - began
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    times = grown / file.stat().st_size
    took = f"opened in {opened:.2f} s, read in {read:.2f} s"
    print(f"{kind}: {took}; {grown / 2**20:.0f} MiB, {times:.2f} times the file, in memory", file=sys.stderr)
    return opened / read


WHAT = {"rlcore": time_rlcore, "bare": time_bare, "open": open_data}


def measured(what: str, algorithm: str, data: str, compiled: bool) -> float:
    """Return what a process of its own measures."""
    flags = ["--compile"] if compiled else []
    return float(last_line([sys.executable, __file__, "--measure", what, algorithm, data, *flags]))


def measured_peer(name: str, python: str, algorithm: str) -> float:
    """Return the updates per second of a peer."""
    script = Path(__file__).parent / "speed" / f"{name}_offline.py"
    sizes = ["--sizes", str(OBSERVED), str(ACTIONS)]
    counts = ["--updates", str(UPDATES[algorithm]), "--warm", str(WARM)]
    return float(last_line([python, str(script), algorithm, *sizes, *counts])["updates_per_s"])


def last_line(command: list[str]) -> Any:
    """Run a command with one thread, and return the JSON of its last line."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def one_round(algorithm: str, data: str, number: int, modes: list[str], peers: dict[str, str]) -> dict[str, float]:
    """Return updates per second by name, in another order in every second round."""
    sides = [(f"{what} {mode}", what, mode == "compiled") for mode in modes for what in ("rlcore", "bare")]
    found = {}
    for name, what, compiled in sides if number % 2 == 0 else sides[::-1]:
        found[name] = measured(what, algorithm, data, compiled)
    for name, python in peers.items():
        found[name] = measured_peer(name, python, algorithm)
    return found


def rows(algorithm: str, rounds: list[dict[str, float]], modes: list[str]) -> list[str]:
    """Return the lines of a table: medians, and the ratios of one round with their range."""
    lines = []
    for name in sorted(rounds[0], key=lambda name: not name.startswith(("rlcore", "bare"))):
        cells = [algorithm, name, f"{statistics.median(found[name] for found in rounds):,.1f}"]
        for mode in modes:
            ours = f"rlcore {mode}"
            cells.append("" if name == ours else spread([found[ours] / found[name] for found in rounds]))
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def main() -> None:
    """Measure, print tables, and write that of the updates."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=[*ALGORITHMS, "open"])
    parser.add_argument("--modes", nargs="+", default=["eager", "compiled"], choices=["eager", "compiled"])
    parser.add_argument("--torchrl-python", help="interpreter of an environment with TorchRL")
    parser.add_argument("--d3rlpy-python", help="interpreter of an environment with d3rlpy")
    parser.add_argument("--measure", nargs=3, metavar=("WHAT", "ALGORITHM", "DATA"), help=argparse.SUPPRESS)
    parser.add_argument("--compile", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        what, algorithm, data = options.measure
        print(json.dumps(WHAT[what](algorithm, data, options.compile)))
        return
    given = {"torchrl": options.torchrl_python, "d3rlpy": options.d3rlpy_python}
    peers = {name: python for name, python in given.items() if python}
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        if options.only in (None, "open"):
            write_data(Path(folder) / "large", 1_000_000)
            for kind in ("device", "memmap"):
                ratio = measured("open", kind, f"{folder}/large", False)
                print(f"opening / reading, {kind}: {ratio:.2f}\n", flush=True)
        if options.only == "open":
            return
        write_data(Path(folder) / "data", 100_000)
        ours = "".join(f" rlcore, {mode} / it |" for mode in options.modes)
        lines = [f"| algorithm | system | updates/s |{ours}", "|---|---|---|" + "---|" * len(options.modes)]
        for algorithm in [options.only] if options.only else ALGORITHMS:
            found = [
                one_round(algorithm, f"{folder}/data", number, options.modes, peers) for number in range(options.rounds)
            ]
            lines += rows(algorithm, found, options.modes)
    table = "\n".join(lines)
    print(f"{table}\n\nload {os.getloadavg()[0]:.1f}")
    if options.only is None:
        heading = f"# Speed of offline updates, torch's threads: 1\n\n{machine()}, {options.rounds} rounds."
        (RESULTS / "speed-offline.md").write_text(f"{heading}\n\n{table}\n")


if __name__ == "__main__":
    main()
