"""What a replay buffer of single frames costs beside one of whole stacks: memory, adding, and sampling 32 stacks of 4.

    python benchmarks/stacks.py [--transitions 20000] [--repeats 300] [--storage memory]

Both hold the same Atari-like transitions, 4 x 84 x 84 bytes; samples are drawn in turns, and the median counts.
Sizes are given for a million transitions too.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
from rlcore_plugin_replay.buffer import ReplayBuffer
from tensordict import TensorDict

STACK, SIDE, EPISODE = 4, 84, 500


def batches(transitions, steps=200):
    """Yield batches of one env that shows random frames, whose episodes have 500 steps."""
    frames = torch.randint(0, 256, (steps + STACK, SIDE, SIDE), dtype=torch.uint8)
    for begin in range(0, transitions, steps):
        stacks = torch.stack([frames[number : number + STACK] for number in range(steps + 1)])
        done = torch.zeros(1, steps, 1, dtype=torch.bool)
        following = {"observation": stacks[None, 1:], "reward": torch.zeros(1, steps, 1), "done": done}
        entries = {"observation": stacks[None, :-1], "action": torch.zeros(1, steps, dtype=torch.int64)}
        yield TensorDict({**entries, "next": TensorDict({**following, "terminated": done}, [1, steps])}, [1, steps])
        new = torch.randint(0, 256, (steps, SIDE, SIDE), dtype=torch.uint8)
        keep = STACK if (begin + steps) % EPISODE else 0
        frames = torch.cat([frames[-keep:], new]) if keep else torch.cat([new[:1].expand(STACK, -1, -1), new])


def size(buffer):
    """Return the bytes of the rows and frames of a buffer that is full."""
    state = buffer.state_dict()
    rows = state["ring"]["rows"]
    per_row = rows.shape[1] * rows.element_size()
    if "stacks" not in state:
        return per_row * 1_000_000
    frames = state["stacks"]["frames"]
    return per_row * 1_000_000 + frames.shape[1] * frames.element_size() * (1_000_000 + 1_000_000 // 24)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--transitions", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=300)
    parser.add_argument("--storage", choices=["memory", "memmap"], default="memory")
    options = parser.parse_args()
    common = {"capacity": options.transitions, "minibatch_size": 32, "storage": options.storage, "seed": 1}
    buffers = {"whole stacks": ReplayBuffer.of(**common), "single frames": ReplayBuffer.of(**common, stack=STACK)}
    added = dict.fromkeys(buffers, 0.0)
    for batch in batches(options.transitions):
        for name, buffer in buffers.items():
            begin = time.perf_counter()
            buffer.add(batch)
            added[name] += time.perf_counter() - begin
    times = {name: [] for name in buffers}
    for _ in range(options.repeats):
        for name, buffer in buffers.items():
            begin = time.perf_counter()
            buffer.sample()
            times[name].append(time.perf_counter() - begin)
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, buffer in buffers.items():
        print(
            f"{name}: sample of 32 {1e6 * medians[name]:.0f} us, add {1e6 * added[name] / options.transitions:.1f} us "
            f"a transition, {size(buffer) / 1e9:.2f} GB for a million transitions"
        )
    print(f"single frames take {medians['single frames'] / medians['whole stacks']:.2f} times as long to sample")


if __name__ == "__main__":
    main()
