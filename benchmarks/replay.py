"""What replay buffers cost: writing and drawing transitions, rlcore beside hand-written rows and peers.

    python benchmarks/replay.py --peers-python .venv-peers/bin/python

Transitions have observations of 17 numbers and actions of 6; a million of them are held. Times are those of the
processor, best of several repeats in processes that take turns, so that other work on the machine counts for little;
one thread. A figure only counts against another of the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

CAPACITY, OBSERVATION, ACTION, DRAWN = 1_000_000, 17, 6, 256
SIZES = (1, 10, 256)
KEYS = ("observation", "action", ("next", "observation"), ("next", "reward"), ("next", "terminated"))


def microseconds(call: Callable[[], Any], repeats: int = 200) -> float:
    """Return microseconds of processor time per call."""
    found = []
    for _ in range(7):
        began = time.process_time()
        for _ in range(repeats):
            call()
        found.append((time.process_time() - began) / repeats * 1e6)
    return min(found)


def transitions(count: int, light: bool = False) -> Any:
    """Return a batch `[1, count]` as a collector gives it: views of memory by time."""
    import torch
    from tensordict import TensorDict

    flags = {name: torch.zeros(1, count, 1, dtype=torch.bool) for name in ("done", "terminated", "truncated")}
    following = {"observation": torch.randn(1, count, OBSERVATION), "reward": torch.randn(1, count, 1), **flags}
    entries = {"observation": torch.randn(1, count, OBSERVATION), "action": torch.randn(1, count, ACTION)}
    if not light:
        return TensorDict({**entries, "next": TensorDict(following, [1, count])}, [1, count])
    from rlcore.types import CollectedBatch

    return CollectedBatch({**entries, **{("next", name): value for name, value in following.items()}})


def measure(
    extend: Callable[[Any], Any],
    draw: Callable[[], Any],
    update: Callable[[], Any] | None = None,
    batches: Callable[[int], Any] = transitions,
) -> dict[str, float]:
    """Fill a buffer, and time what is done with it."""
    many = batches(4096)
    for _ in range(CAPACITY // 4096 + 1):
        extend(many)
    given = {size: batches(size) for size in SIZES}
    found = {f"write {size}": microseconds(lambda size=size: extend(given[size])) for size in SIZES}  # type: ignore[misc]
    found[f"draw {DRAWN}"] = microseconds(draw)
    if update is not None:
        found[f"draw {DRAWN}, set priorities"] = microseconds(update)
    return found


def bare() -> dict[str, float]:
    """One row of numbers per transition, packed beforehand and gathered by hand; flags are numbers too."""
    import torch

    rows, position = torch.zeros(CAPACITY, 2 * OBSERVATION + ACTION + 4), 0
    packed = {size: torch.randn(size, rows.shape[1]) for size in (*SIZES, 4096)}

    def extend(batch: Any) -> None:
        nonlocal position
        count = batch.numel()
        position = 0 if position + count > CAPACITY else position
        rows[position : position + count] = packed[count]
        position += count

    def draw() -> Any:
        found = rows.index_select(0, torch.randint(CAPACITY, (DRAWN,)))
        o, a = OBSERVATION, ACTION
        return found[:, :o], found[:, o : o + a], found[:, o + a : 2 * o + a], found[:, -4], found[:, -3] > 0

    return measure(extend, draw)


def rlcore(prioritized: bool, n_steps: int = 1, light: bool = True) -> dict[str, float]:
    """Write what collectors hand over, and draw as the training loop does: minibatches, of which a loss reads five."""
    import torch
    from rlcore_plugin_replay.buffer import ReplayBuffer
    from rlcore_plugin_replay.prioritized import PrioritizedReplayBuffer

    kind = PrioritizedReplayBuffer if prioritized else ReplayBuffer
    buffer = kind.of(capacity=CAPACITY, minibatch_size=DRAWN, n_steps=n_steps)
    error = torch.rand(DRAWN, 1)

    def draw() -> Any:
        (minibatch,) = buffer.minibatches(None)  # type: ignore[arg-type]
        return minibatch, [minibatch[key] for key in KEYS]

    update = (lambda: buffer.feedback(draw()[0], {"td_error": error})) if prioritized else None
    return measure(buffer.add, draw, update, lambda count: transitions(count, light))


def cpprb(prioritized: bool) -> dict[str, float]:
    """`ReplayBuffer` and `PrioritizedReplayBuffer`, which take arrays; samples come with their weights."""
    import cpprb as peer
    import numpy as np

    shapes = {"obs": OBSERVATION, "act": ACTION, "rew": 1, "next_obs": OBSERVATION, "done": 1}
    entries = {name: {"shape": shape} for name, shape in shapes.items()}
    buffer = peer.PrioritizedReplayBuffer(CAPACITY, entries, alpha=0.7) if prioritized else None
    buffer = buffer or peer.ReplayBuffer(CAPACITY, entries)
    error = np.random.rand(DRAWN)

    def rows(count: int) -> dict[str, Any]:
        return {name: np.random.randn(count, shape).astype(np.float32) for name, shape in shapes.items()}

    def update() -> None:
        buffer.update_priorities(buffer.sample(DRAWN, beta=0.5)["indexes"], error)

    draw = (lambda: buffer.sample(DRAWN, beta=0.5)) if prioritized else (lambda: buffer.sample(DRAWN))
    return measure(lambda batch: buffer.add(**batch), draw, update if prioritized else None, rows)


def tianshou(prioritized: bool) -> dict[str, float]:
    """`ReplayBuffer` and `PrioritizedReplayBuffer`, which take one transition at a time."""
    import numpy as np
    from tianshou.data import Batch, PrioritizedReplayBuffer, ReplayBuffer

    buffer = PrioritizedReplayBuffer(CAPACITY, alpha=0.7, beta=0.5) if prioritized else ReplayBuffer(CAPACITY)
    observation, action = np.random.randn(OBSERVATION).astype(np.float32), np.random.randn(ACTION).astype(np.float32)
    flags = {"terminated": False, "truncated": False}
    row = Batch(obs=observation, act=action, rew=0.5, obs_next=observation, info={}, **flags)
    add = microseconds(lambda: buffer.add(row))
    for array in (buffer.obs, buffer.obs_next, buffer.act, buffer.rew):
        array.fill(1)
    buffer._size = CAPACITY  # what it holds counts; a million calls of add would take a minute
    found = {"write 1": add, f"draw {DRAWN}": microseconds(lambda: buffer.sample(DRAWN), 50)}
    if not prioritized:
        return found
    every, error = np.arange(CAPACITY), np.random.rand(DRAWN)
    buffer.update_weight(every, np.random.rand(CAPACITY))

    def update() -> None:
        buffer.update_weight(buffer.sample(DRAWN)[1], error)

    return found | {f"draw {DRAWN}, set priorities": microseconds(update, 50)}


def torchrl(mapped: bool) -> dict[str, float]:
    """`TensorDictReplayBuffer`, uniform."""
    from torchrl.data import LazyMemmapStorage, LazyTensorStorage, TensorDictReplayBuffer

    storage = LazyMemmapStorage(CAPACITY) if mapped else LazyTensorStorage(CAPACITY)
    buffer = TensorDictReplayBuffer(storage=storage, batch_size=DRAWN)

    def draw() -> Any:
        found = buffer.sample()
        return [found.get(key) for key in KEYS]

    return measure(lambda batch: buffer.extend(batch.reshape(-1)), draw)


def sb3() -> dict[str, float]:
    """`ReplayBuffer`, which takes one transition at a time."""
    import gymnasium
    import numpy as np
    from stable_baselines3.common.buffers import ReplayBuffer

    spaces = [gymnasium.spaces.Box(-1, 1, (size,), np.float32) for size in (OBSERVATION, ACTION)]
    buffer = ReplayBuffer(CAPACITY, *spaces, device="cpu", n_envs=1, handle_timeout_termination=False)
    for array in (buffer.observations, buffer.next_observations, buffer.actions, buffer.rewards, buffer.dones):
        array.fill(1)
    buffer.full = True
    batch = transitions(1)
    observation, action = batch["observation"].numpy(), batch["action"].numpy()
    nothing = np.zeros(1, np.float32)
    add = microseconds(lambda: buffer.add(observation, observation, action, nothing, nothing, [{}]))
    return {"write 1": add, f"draw {DRAWN}": microseconds(lambda: buffer.sample(DRAWN))}


OURS: dict[str, Callable[[], dict[str, float]]] = {
    "bare rows": bare,
    "rlcore replay": lambda: rlcore(prioritized=False),
    "rlcore replay, TensorDicts": lambda: rlcore(prioritized=False, light=False),
    "rlcore replay, 3 steps": lambda: rlcore(prioritized=False, n_steps=3),
    "rlcore prioritized": lambda: rlcore(prioritized=True),
}
PEERS: dict[str, Callable[[], dict[str, float]]] = {
    "sb3": sb3,
    "tianshou": lambda: tianshou(prioritized=False),
    "tianshou prioritized": lambda: tianshou(prioritized=True),
    "cpprb": lambda: cpprb(prioritized=False),
    "cpprb prioritized": lambda: cpprb(prioritized=True),
    "torchrl": lambda: torchrl(mapped=False),
    "torchrl memmap": lambda: torchrl(mapped=True),
}


def in_process(python: str, name: str) -> dict[str, float]:
    """Measure one buffer in a process of its own."""
    command = [python, __file__, "--one", name]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-2000:]}")
    found = json.loads(done.stdout.strip().splitlines()[-1])
    print(name, found, flush=True)
    return dict(found)


def table(results: dict[str, dict[str, float]]) -> str:
    """Return microseconds and ratios to rlcore's uniform buffer as Markdown."""
    columns = list(dict.fromkeys(key for found in results.values() for key in found))
    lines = ["| buffer | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    base = results["rlcore replay"]
    for name, found in results.items():
        cells = []
        for column in columns:
            value, other = found.get(column), base.get(column)
            ratio = f" ({value / other:.2f})" if value is not None and other is not None else ""
            cells.append("-" if value is None else f"{value:,.1f}{ratio}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers-python", help="interpreter of the peers' environment")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured, in turns")
    parser.add_argument("--one", choices=[*OURS, *PEERS], help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        import torch

        torch.set_num_threads(1)
        print(json.dumps({key: round(value, 1) for key, value in {**OURS, **PEERS}[args.one]().items()}))
        return
    pythons = dict.fromkeys(OURS, sys.executable)
    if args.peers_python:
        pythons |= dict.fromkeys(PEERS, args.peers_python)
    results: dict[str, dict[str, float]] = {}
    for _ in range(args.rounds):  # in turns: other work on the machine meets all of them
        for name, python in pythons.items():
            before, found = results.get(name, {}), in_process(python, name)
            results[name] = {key: min(value, before.get(key, value)) for key, value in found.items()}
    from bench import RESULTS, machine

    head = f"# Replay buffers\n\n{machine()}. Microseconds per call, and as a multiple of rlcore's uniform buffer.\n\n"
    (RESULTS / "replay.md").write_text(head + table(results) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
