"""Saving and loading a large checkpoint, against writing and syncing the same bytes.

A pair is a save, with everything that makes it safe (hashes per component, checksums per file, every sync), and a plain
`write` and `fsync` of the same number of bytes, in turn. The load verifies and maps the file, and copies it into live
tensors; it is held against the same write, and a plain read is shown beside it.

    python benchmarks/checkpoint_size.py --mib 1024 --pairs 5
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from bench import RESULTS, machine
from rlcore_plugin_torch.checkpointer import TorchCheckpointer

from rlcore.checkpoints.provenance import Provenance
from rlcore.checkpoints.store import Store
from rlcore.state.snapshot import Snapshot
from rlcore.types.progress import Progress


def seconds(call: Callable[[], object]) -> float:
    """Return how long a call takes."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def plain(folder: Path, data: memoryview) -> None:
    """Write and sync."""
    with (folder / "plain").open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def copy_into(store: Store, tensors: dict[str, torch.Tensor]) -> None:
    """Load the latest checkpoint and copy it into live tensors."""
    _, states = store.load_newest()
    for name, tensor in tensors.items():
        tensor.copy_(states["model"][name])


def pair(folder: Path, tensors: dict[str, torch.Tensor], data: memoryview, save_first: bool) -> tuple[float, ...]:
    """Return the seconds of a save, a plain write, a load and a plain read."""
    backend = TorchCheckpointer(TorchCheckpointer.Config(), None)  # type: ignore[arg-type]
    store = Store(folder / "checkpoints", backend, "torch")
    calls: tuple[Callable[[], object], ...] = (
        lambda: store.save(Snapshot.of({"model": tensors}, Progress(10, 1)), Provenance()),
        lambda: plain(folder, data),
    )
    times = [0.0, 0.0]
    for place in (0, 1) if save_first else (1, 0):
        times[place] = seconds(calls[place])
    load = seconds(lambda: copy_into(store, tensors))
    read = seconds(lambda: (folder / "plain").read_bytes())
    return *times, load, read


def main() -> None:
    """Print a row per pair and the medians, and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--folder", help="where to write; default: the temporary folder")
    args = parser.parse_args()
    torch.set_num_threads(1)
    tensors = {f"weight{index}": torch.rand(4 << 20) for index in range(args.mib // 16)}
    data = memoryview(torch.cat(list(tensors.values())).numpy()).cast("B")
    lines = [
        "| save, s | write and fsync, s | load, s | plain read, s | save / write | load / write |",
        "|---" * 6 + "|",
    ]
    ratios = []
    for number in range(args.pairs):
        folder = Path(tempfile.mkdtemp(dir=args.folder))
        times = pair(folder, tensors, data, save_first=number % 2 == 0)
        shutil.rmtree(folder)
        ratios.append((times[0] / times[1], times[2] / times[1]))
        lines.append(f"| {' | '.join(f'{value:.2f}' for value in (*times, *ratios[-1]))} |")
    medians = [statistics.median(values) for values in zip(*ratios, strict=True)]
    lines += ["", f"Median of {args.pairs} pairs: save {medians[0]:.2f}, load {medians[1]:.2f} of the write and fsync."]
    text = f"# Checkpoint of {args.mib} MiB\n\n{machine()}.\n\n" + "\n".join(lines) + "\n"
    print(text)
    (RESULTS / "checkpoint-size.md").write_text(text)


if __name__ == "__main__":
    main()
