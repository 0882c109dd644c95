"""How much memory it takes to save and restore a large tensor that lies in a mapped file.

Each way in a process of its own: it saves a shared mapping of a file and restores into another one, and says by how
much the peak of its resident memory grew. Pages of a mapped file count as resident until the system takes them back.
`replay` is the buffer of rlcore-plugin-replay with `storage = "memmap"`, the others a tensor.

    python benchmarks/checkpoint_memory.py --gib 4
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from bench import RESULTS, machine
from rlcore_plugin_testing.memory import resident

Call = Callable[[], object]
Way = tuple[Callable[[torch.Tensor], object], Callable[[torch.Tensor], object]]

WAYS = [f"{kind} {name}" for name in ("torchsnapshot", "torch", "dcp") for kind in ("rlcore", "replay", "library")]
ROW = 1 << 10  # float32 of a row of the replay buffer


def store_of(folder: Path, name: str) -> Any:
    import importlib

    from rlcore.checkpoints.store import Store

    module = importlib.import_module(f"rlcore_plugin_{name}.checkpointer")
    kind = getattr(module, f"{name.capitalize()}Checkpointer")
    return Store(folder / "checkpoints", kind(kind.Config(), None), name)


def of_replay(folder: Path, name: str, elements: int) -> Iterator[Call]:
    """Yield the save of a full buffer, and the restore of another one."""
    from rlcore_plugin_replay.buffer import ReplayBuffer
    from tensordict import TensorDict

    from rlcore.checkpoints.provenance import Provenance
    from rlcore.state.memory import bytes_of, let_go
    from rlcore.state.snapshot import Snapshot
    from rlcore.types.progress import Progress

    store, rows = store_of(folder, name), elements // ROW
    first, second = (ReplayBuffer.of(folder=folder, capacity=rows, storage="memmap") for _ in range(2))
    source = torch.from_file(str(folder.parent / "source"), shared=True, size=elements).reshape(rows, ROW)
    for chunk in source.split(1 << 12):
        first.extend(TensorDict({"frames": chunk}, [len(chunk)]))
        let_go(bytes_of(chunk))
        let_go(bytes_of(first.state_dict()["ring"]["rows"]))
    yield lambda: store.save(Snapshot.of({"buffer": first.state_dict()}, Progress(10, 1)), Provenance())
    yield lambda: second.load_state_dict(store.load_newest()[1]["buffer"])
    saved, found = (buffer.state_dict()["ring"]["rows"][::64] for buffer in (first, second))
    assert len(found)
    assert torch.equal(saved, found)


def of_rlcore(folder: Path, name: str) -> Way:
    from rlcore.checkpoints.provenance import Provenance
    from rlcore.state.memory import copy_in_pieces
    from rlcore.state.snapshot import Snapshot
    from rlcore.types.progress import Progress

    store = store_of(folder, name)

    def restore(tensor: torch.Tensor) -> None:
        copy_in_pieces(tensor, store.load_newest({"replay/frames": tensor})[1]["replay"]["frames"])

    return lambda tensor: store.save(
        Snapshot.of({"replay": {"frames": tensor}}, Progress(10, 1)), Provenance()
    ), restore


def of_library(folder: Path, name: str) -> Way:
    if name == "torch":
        file = folder / "file.pt"

        def save(tensor: torch.Tensor) -> None:
            torch.save({"frames": tensor}, file)
            with file.open("rb") as stream:
                os.fsync(stream.fileno())

        return save, lambda tensor: tensor.copy_(torch.load(file, weights_only=True)["frames"])
    if name == "dcp":
        from torch.distributed import checkpoint as dcp

        place = str(folder / "dcp")
        return lambda tensor: dcp.save({"frames": tensor}, checkpoint_id=place), lambda tensor: dcp.load(
            {"frames": tensor}, checkpoint_id=place
        )
    import torchsnapshot

    place = str(folder / "snapshot")

    def take(tensor: torch.Tensor) -> None:
        torchsnapshot.Snapshot.take(place, {"state": torchsnapshot.StateDict(frames=tensor)})

    def restore(tensor: torch.Tensor) -> None:
        torchsnapshot.Snapshot(place).restore({"state": torchsnapshot.StateDict(frames=tensor)})

    return take, restore


def of_tensor(folder: Path, way: Way, elements: int) -> Iterator[Call]:
    """Yield the save of a mapped tensor, and its restore into another one."""
    save, restore = way
    tensor, target = (
        torch.from_file(str(folder.parent / file), shared=True, size=elements) for file in ("source", "target")
    )
    yield lambda: save(tensor)
    yield lambda: restore(target)
    assert torch.equal(tensor[:: 1 << 16], target[:: 1 << 16])


def measure(folder: Path, way: str, elements: int) -> None:
    """Print seconds and growth of a save and of a restore."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    kind, _, name = way.partition(" ")
    if kind == "replay":
        calls = of_replay(folder, name, elements)
    else:
        calls = of_tensor(folder, (of_rlcore if kind == "rlcore" else of_library)(folder, name), elements)
    for call in calls:
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
        before, began = resident(), time.perf_counter()
        call()
        print(time.perf_counter() - began, (resident("VmHWM") - before) >> 20)


def main() -> None:
    """Print a row per way, and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", type=float, default=4)
    parser.add_argument("--folder", help="where to write; default: the temporary folder")
    parser.add_argument("--way", nargs=3, metavar=("FOLDER", "WAY", "ELEMENTS"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.way:
        measure(Path(args.way[0]), args.way[1], int(args.way[2]))
        return
    elements = int(args.gib * (1 << 28))
    folder = Path(tempfile.mkdtemp(dir=args.folder))
    with (folder / "source").open("wb") as stream:
        for seed in range(elements >> 22):
            np.random.default_rng(seed).random(1 << 22, dtype=np.float32).tofile(stream)
    lines = ["| way | save, s | growth, MiB | restore, s | growth, MiB |", "|---" * 5 + "|"]
    for way in WAYS:
        place = folder / "place"
        place.mkdir()
        (folder / "target").unlink(missing_ok=True)
        (folder / "target").touch()
        words = [sys.executable, __file__, "--way", str(place), way, str(elements)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        cells = [f"{float(s):.1f} | {m}" for s, m in (line.split() for line in done.stdout.splitlines())]
        lines.append(f"| {way} | {' | '.join(cells)} |" if not done.returncode else f"| {way} | failed |" + done.stderr)
        print(lines[-1], flush=True)
        shutil.rmtree(place)
    shutil.rmtree(folder)
    text = (
        f"# Memory for a checkpoint of {args.gib:g} GiB in a mapped file\n\n{machine()}.\n\n" + "\n".join(lines) + "\n"
    )
    print(text)
    (RESULTS / "checkpoint-memory.md").write_text(text)


if __name__ == "__main__":
    main()
