"""Saving and loading a large checkpoint, against writing and syncing the same bytes: `python benchmarks/checkpoint_size.py`.

A pair is a save, with everything that makes it safe (hashes per component, checksums per file, every sync), and a plain
`write` and `fsync` of the same number of bytes, in turn. The load verifies and maps the file, and copies it into tensors.
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
from rlcore_plugin_torch.checkpointer import TorchCheckpointer

from rlcore.checkpoint import Facts, Store
from rlcore.progress import Progress
from rlcore.snapshot import Snapshot


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
    """Load the newest checkpoint and copy it into live tensors."""
    _, states = store.load_newest()
    for name, tensor in tensors.items():
        tensor.copy_(states["model"][name])


def main() -> None:
    """Print a row per pair and the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--folder", help="where to write; default: the temporary folder")
    args = parser.parse_args()
    torch.set_num_threads(1)
    tensors = {f"weight{index}": torch.rand(4 << 20) for index in range(args.mib // 16)}
    data = memoryview(torch.cat(list(tensors.values())).numpy()).cast("B")
    rows = []
    for number in range(args.pairs):
        folder = Path(tempfile.mkdtemp(dir=args.folder))
        store = Store(folder / "checkpoints", TorchCheckpointer(TorchCheckpointer.Config(), None), "torch")  # type: ignore[arg-type]
        calls: list[Callable[[], object]] = [
            lambda: store.save(Snapshot.of({"model": tensors}, Progress(10, 1)), Facts()),
            lambda: plain(folder, data),
        ]
        times = [0.0, 0.0]
        for place in (0, 1) if number % 2 == 0 else (1, 0):
            times[place] = seconds(calls[place])
        load = seconds(lambda: copy_into(store, tensors))
        read = seconds(lambda: (folder / "plain").read_bytes())
        rows.append((times[0] / times[1], load / times[1]))
        print(f"save {times[0]:.2f} s, write and fsync {times[1]:.2f} s, load {load:.2f} s, plain read {read:.2f} s")
        shutil.rmtree(folder)
    for name, values in zip(("save", "load"), zip(*rows, strict=True), strict=True):
        spread = f"{min(values):.2f} to {max(values):.2f}"
        print(f"{name} of {args.mib} MiB / write and fsync: {statistics.median(values):.2f} ({spread})")


if __name__ == "__main__":
    main()
