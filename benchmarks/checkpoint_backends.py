"""The checkpoint back ends beside the libraries they stand on, and how long a save in the background blocks training.

A round is, for each back end in turn: a save with all that makes it safe, the library's own save with every file
synced, a load (verified, mapped, copied into live tensors) and the library's own load into the same tensors; and beside
them a plain `write` and `fsync` of the same bytes, mapping, hashing and copying that file, and one copy of all tensors.
Blocked is the time until a save in the background gives training its thread back, from the second save on; the first
one also takes the memory for the copy. The back ends take turns at being first in a round, and a round before the
others is not counted: a virtual machine gives out memory slowly that it has taken back.

    python benchmarks/checkpoint_backends.py --mib 1024 --rounds 6
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torchsnapshot
import xxhash
from bench import RESULTS, machine
from rlcore_plugin_dcp.checkpointer import DcpCheckpointer
from rlcore_plugin_torch.checkpointer import TorchCheckpointer
from rlcore_plugin_torchsnapshot.checkpointer import TorchsnapshotCheckpointer
from torch.distributed import checkpoint as dcp

from rlcore.checkpoints.provenance import Provenance
from rlcore.checkpoints.store import Store
from rlcore.state.snapshot import Snapshot
from rlcore.training.saver import Saver
from rlcore.training.schedule import SaveSchedule
from rlcore.types.progress import Every, Progress

Tensors = dict[str, torch.Tensor]


def seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def sync(folder: Path) -> None:
    for file in folder.rglob("*"):
        if file.is_file():
            with file.open("rb") as stream:
                os.fsync(stream.fileno())


def copied(source: Any, target: Tensors) -> None:
    for name, tensor in target.items():
        tensor.copy_(source[name])


def torch_save(folder: Path, tensors: Tensors) -> None:
    torch.save(tensors, folder / "file.pt")
    sync(folder)


def torchsnapshot_take(folder: Path, tensors: Tensors) -> None:
    torchsnapshot.Snapshot.take(str(folder), {"state": torchsnapshot.StateDict(**tensors)})
    sync(folder)


def torchsnapshot_restore(folder: Path, tensors: Tensors) -> None:
    torchsnapshot.Snapshot(str(folder)).restore({"state": torchsnapshot.StateDict(**tensors)})


KINDS = {"torch": TorchCheckpointer, "torchsnapshot": TorchsnapshotCheckpointer, "dcp": DcpCheckpointer}
LIBRARIES: dict[str, tuple[Callable[[Path, Tensors], object], Callable[[Path, Tensors], object]]] = {
    "torch": (torch_save, lambda folder, into: copied(torch.load(folder / "file.pt", weights_only=True), into)),
    "torchsnapshot": (torchsnapshot_take, torchsnapshot_restore),
    "dcp": (
        lambda folder, tensors: dcp.save(tensors, checkpoint_id=str(folder)),
        lambda folder, into: dcp.load(into, checkpoint_id=str(folder)),
    ),
}


def ours(folder: Path, name: str, tensors: Tensors, live: Tensors) -> dict[str, float]:
    """Return the seconds of a save, a load, and of what a save in the background blocks."""
    backend = KINDS[name](KINDS[name].Config(), None)  # type: ignore[arg-type]
    store = Store(folder / name, backend, name, keep_last=1)

    def snapshot(frames: int) -> Snapshot:
        return Snapshot.of({"model": tensors}, Progress(100, frames))

    times = {"save": seconds(lambda: store.save(snapshot(0), Provenance()))}
    times["load"] = seconds(lambda: copied(store.load_newest()[1]["model"], live))
    saver = Saver(store, SaveSchedule(Every(1), False, in_background=True), store)
    for frames, what in enumerate(("first blocked", "blocked"), start=1):
        times[what] = seconds(lambda frames=frames: saver.begin(snapshot(frames), Provenance()))
        saver.finished(wait=True)
    shutil.rmtree(folder / name)
    return times


def library(folder: Path, name: str, tensors: Tensors, live: Tensors) -> dict[str, float]:
    """Return the seconds of the library's own save and load."""
    save, load = LIBRARIES[name]
    place = folder / f"library-{name}"
    place.mkdir()
    times = {"library save": seconds(lambda: save(place, tensors)), "library load": seconds(lambda: load(place, live))}
    shutil.rmtree(place)
    return times


def plain(folder: Path, tensors: Tensors, live: Tensors) -> dict[str, float]:
    """Return the seconds of writing and syncing, of mapping, hashing and copying, and of one copy."""
    file = folder / "plain"

    def write() -> None:
        with file.open("wb", buffering=0) as stream:
            for tensor in tensors.values():
                stream.write(tensor.numpy().data.cast("B"))
            os.fsync(stream.fileno())

    def load() -> None:
        content = np.memmap(file, mode="c", dtype=np.uint8)
        xxhash.xxh3_128(content).digest()
        begin = 0
        for tensor in live.values():
            tensor.copy_(torch.from_numpy(content[begin : begin + tensor.nbytes]).view(tensor.dtype))
            begin += tensor.nbytes

    times = {"write": seconds(write), "map, check, copy": seconds(load)}
    times["one copy"] = seconds(lambda: {name: tensor.clone() for name, tensor in tensors.items()})
    file.unlink()
    return times


def main() -> None:
    """Print a row per back end with medians, and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--folder", help="where to write; default: the temporary folder")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    tensors = {f"weight{index}": torch.rand(4 << 20) for index in range(args.mib // 16)}
    live = {name: torch.zeros_like(tensor) for name, tensor in tensors.items()}
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in KINDS}
    names = list(KINDS)
    for number in range(-1, args.rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            folder = Path(tempfile.mkdtemp(dir=args.folder))
            times = plain(folder, tensors, live) | ours(folder, name, tensors, live)
            times |= library(folder, name, tensors, live)
            if number >= 0:
                rounds[name].append(times)
            shutil.rmtree(folder)
    keys = list(rounds["torch"][0])
    lines = [f"| back end | {' | '.join(keys)} |", "|---" * (len(keys) + 1) + "|"]
    ratios = ["| back end | save / write | load / map, check, copy | blocked / one copy |", "|---" * 4 + "|"]
    pairs = (("save", "write"), ("load", "map, check, copy"), ("blocked", "one copy"))
    for name, found in rounds.items():
        medians = [f"{statistics.median(times[key] for times in found):.2f}" for key in keys]
        lines.append(f"| {name} | {' | '.join(medians)} |")
        of_each = [f"{statistics.median(times[a] / times[b] for times in found):.2f}" for a, b in pairs]
        ratios.append(f"| {name} | {' | '.join(of_each)} |")
    text = f"# Checkpoint back ends, {args.mib} MiB\n\n{machine()}. Seconds, medians of {args.rounds} rounds.\n\n"
    text += "\n".join([*lines, "", "Medians of the ratios within a round:", "", *ratios]) + "\n"
    print(text)
    (RESULTS / "checkpoint-backends.md").write_text(text)


if __name__ == "__main__":
    main()
