"""Tensors in mapped files: what gives their pages back, and restoring into them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from rlcore_plugin_dcp.checkpointer import DcpCheckpointer
from rlcore_plugin_testing import make_run
from rlcore_plugin_testing.memory import resident
from rlcore_plugin_testing.toy_parts import ToyCheckpointer
from rlcore_plugin_torchsnapshot.checkpointer import TorchsnapshotCheckpointer

import rlcore
from rlcore.checkpoints.provenance import Provenance
from rlcore.checkpoints.store import Store
from rlcore.state.memory import PIECE_BYTES, bytes_of, copy_in_pieces, in_shared_file, let_go, pieces
from rlcore.state.snapshot import Snapshot
from rlcore.types.progress import Progress

BACKENDS = {"toy": ToyCheckpointer, "torchsnapshot": TorchsnapshotCheckpointer, "dcp": DcpCheckpointer}


def mapped(path, elements, shared=True):
    return torch.from_file(str(path), shared=shared, size=elements, dtype=torch.float32)


@pytest.fixture
def file(tmp_path):
    """A file of 40 MiB that counts."""
    np.arange(10 << 20, dtype=np.float32).tofile(tmp_path / "file")
    return tmp_path / "file"


def test_only_a_shared_mapping_of_a_file_is_taken_for_one(file):
    shared = mapped(file, 10 << 20)
    assert in_shared_file(bytes_of(shared))
    assert in_shared_file(bytes_of(shared[1000:2000]))
    assert not in_shared_file(bytes_of(mapped(file, 10 << 20, shared=False)))
    assert not in_shared_file(bytes_of(torch.zeros(10 << 20)))


def test_giving_pages_back_loses_nothing_that_was_written(file):
    tensor = mapped(file, 10 << 20)
    tensor += 1
    let_go(bytes_of(tensor))
    assert torch.equal(tensor, torch.arange(1, (10 << 20) + 1, dtype=torch.float32))


def test_pieces_are_the_whole_in_order(file):
    tensor = mapped(file, 10 << 20)[3:]
    found = [piece.copy() for piece in pieces(bytes_of(tensor))]
    assert [len(piece) for piece in found] == [PIECE_BYTES, PIECE_BYTES, 4 * tensor.numel() - 2 * PIECE_BYTES]
    assert np.array_equal(np.concatenate(found).view(np.float32), tensor.numpy())
    assert [len(piece) for piece in pieces(bytes_of(tensor.clone()))] == [4 * tensor.numel()]


@pytest.mark.parametrize("shared", [True, False])
def test_copying_between_files_leaves_neither_in_memory(tmp_path, file, shared):
    source = mapped(file, 10 << 20, shared)
    (tmp_path / "target").touch()
    target = mapped(tmp_path / "target", 10 << 20)
    before = resident()
    copy_in_pieces(target, source)
    assert resident() - before < 8 << 20
    assert torch.equal(target, torch.arange(10 << 20, dtype=torch.float32))
    assert torch.equal(source, target)


def test_copying_keeps_what_was_written_into_a_private_mapping(tmp_path, file):
    source, target = mapped(file, 10 << 20, shared=False), torch.zeros(10 << 20)
    source[5] = -1.0
    copy_in_pieces(target, source)
    assert source[5] == target[5] == -1.0
    assert torch.equal(source, target)


def test_copying_takes_tensors_of_every_kind():
    source = torch.arange(6.0).reshape(2, 3)
    for target in (torch.zeros(2, 3), torch.zeros(3, 2).t(), torch.zeros(2, 3, dtype=torch.float64), source):
        copy_in_pieces(target, source)
        assert torch.equal(target.to(torch.float32), torch.arange(6.0).reshape(2, 3))
    copy_in_pieces(torch.zeros(0), torch.zeros(0))


@pytest.mark.parametrize("backend", BACKENDS)
def test_states_are_restored_into_the_tensors_that_fit(tmp_path, backend):
    """The toy back end cannot do that; then the state holds another tensor, and the component copies it."""
    store = Store(tmp_path / "checkpoints", BACKENDS[backend](BACKENDS[backend].Config(), None), backend)
    saved = {"replay": {"frames": torch.arange(6.0), "other": torch.ones(3)}}
    store.save(Snapshot.of(saved, Progress(10, 1)), Provenance())
    mine, wrong = torch.zeros(6), torch.zeros(4)
    _, states = store.load_newest({"replay/frames": mine, "replay/other": wrong, "replay/none": torch.zeros(1)})
    found = states["replay"]
    assert torch.equal(found["frames"], torch.arange(6.0))
    assert torch.equal(found["other"], torch.ones(3))
    assert (found["frames"].data_ptr() == mine.data_ptr()) == (backend != "toy")
    assert not wrong.any()


# saves a mapped tensor and restores it into another one, and prints by how much the peak of memory grew each time
_MEASURED = """
import sys
from pathlib import Path
import torch
import rlcore
from rlcore.checkpoints.provenance import Provenance
from rlcore.checkpoints.store import Store
from rlcore.types.progress import Progress
from rlcore.state.snapshot import Snapshot
from rlcore_plugin_testing.memory import resident
from rlcore_plugin_torchsnapshot.checkpointer import TorchsnapshotCheckpointer
folder, elements = Path(sys.argv[1]), int(sys.argv[2])
def mapped(name):
    (folder / name).touch()
    return torch.from_file(str(folder / name), shared=True, size=elements, dtype=torch.float32)
backend = TorchsnapshotCheckpointer(TorchsnapshotCheckpointer.Config(), None)
store = Store(folder / "checkpoints", backend, "torchsnapshot")
small = Snapshot.of({"replay": {"frames": torch.ones(10)}}, Progress(10, 0))
store.save(small, Provenance())
store.load_newest()
before = resident()
source = mapped("source")
store.save(Snapshot.of({"replay": {"frames": source}}, Progress(10, 1)), Provenance())
print(resident("VmHWM") - before)
target = mapped("target")
_, states = store.load_newest({"replay/frames": target})
assert states["replay"]["frames"].data_ptr() == target.data_ptr()
print(resident("VmHWM") - before)
assert torch.equal(source[:1000], target[:1000]) and torch.equal(source[-1000:], target[-1000:])
"""


def test_a_state_in_a_file_is_saved_and_restored_without_being_in_memory(tmp_path):
    elements = 96 << 20  # 384 MiB
    with (tmp_path / "source").open("wb") as stream:
        for _ in range(96):
            np.random.default_rng(1).random(1 << 20, dtype=np.float32).tofile(stream)
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, str(tmp_path), str(elements)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    growth = [int(line) for line in done.stdout.split()]
    assert len(growth) == 2
    assert max(growth) < 128 << 20, growth


@pytest.mark.parametrize(("backend", "in_place"), [("torchsnapshot", True), ("torch", False)])
def test_a_resume_restores_into_a_mapped_tensor_of_a_part(file, tmp_path, backend, in_place):
    """Without a copy where the back end can; the part sees that it is its own memory that it gets."""

    class Keeper:
        name = "keeper"

        def __init__(self, tensor):
            self.tensor, self.given = tensor, None

        @rlcore.hookimpl
        def post_steps(self, batch, trainer):
            self.tensor[0] += 1

        def state_dict(self):
            return {"tensor": self.tensor}

        def load_state_dict(self, state):
            self.given = state["tensor"]

    sections = {"checkpoint": {"use": backend, "every": 32}}
    make_run(folder=tmp_path, sections=sections, hooks=[Keeper(mapped(file, 10 << 20))]).trainer.train()
    (tmp_path / "other").write_bytes(bytes(40 << 20))
    keeper = Keeper(mapped(tmp_path / "other", 10 << 20))
    run = make_run("run.total_frames=96", folder=tmp_path, sections=sections, hooks=[keeper], resume=True)
    run.trainer.metrics.close()
    assert (keeper.given.data_ptr() == keeper.tensor.data_ptr()) == in_place
    assert torch.equal(keeper.given, mapped(file, 10 << 20))
    assert bool(keeper.tensor[1:].all()) == in_place


# fills a replay buffer in a mapped file, saves it and restores it into another one; prints the growth of the peak
_REPLAY = """
import importlib, sys
from pathlib import Path
import torch
import rlcore
from rlcore.checkpoints.provenance import Provenance
from rlcore.checkpoints.store import Store
from rlcore.types.progress import Progress
from rlcore.state.snapshot import Snapshot
from rlcore.state.memory import bytes_of, let_go
from rlcore_plugin_replay.buffer import ReplayBuffer
from rlcore_plugin_testing.memory import resident
from tensordict import TensorDict
folder, name = Path(sys.argv[1]), sys.argv[2]
kind = getattr(importlib.import_module(f"rlcore_plugin_{name}.checkpointer"), f"{name.capitalize()}Checkpointer")
store = Store(folder / "checkpoints", kind(kind.Config(), None), name)
def growth(call):
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    before = resident()
    call()
    print(resident("VmHWM") - before)
def buffer():
    return ReplayBuffer.of(folder=folder, capacity=24 << 10, storage="memmap")
first, second = buffer(), buffer()
for number in range(24):
    frames = torch.full((1 << 10, 2048), float(number))  # 8 KiB a row
    first.extend(TensorDict({"frames": frames}, [1 << 10]))
let_go(bytes_of(first.state_dict()["ring"]["rows"]))
store.save(Snapshot.of({"warm": torch.ones(10)}, Progress(10, 0)), Provenance())
store.load_newest()
growth(lambda: store.save(Snapshot.of({"buffer": first.state_dict()}, Progress(10, 1)), Provenance()))
growth(lambda: second.load_state_dict(store.load_newest()[1]["buffer"]))
rows = [buffer.state_dict()["ring"]["rows"] for buffer in (first, second)]
assert rows[0].shape == rows[1].shape == (24 << 10, 1024)
assert torch.equal(rows[0][::100], rows[1][::100])
"""


@pytest.mark.parametrize(
    "name",
    ["torchsnapshot", pytest.param("dcp", marks=pytest.mark.slow), pytest.param("torch", marks=pytest.mark.slow)],
)
def test_a_replay_buffer_in_a_file_is_restored_without_being_in_memory(tmp_path, name):
    """192 MiB; `torch.save` may take a tensor into memory as a whole, so its peak is no promise."""
    done = subprocess.run(
        [sys.executable, "-c", _REPLAY, str(tmp_path), name], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    save, restore = [int(line) for line in done.stdout.split()]
    assert restore < 96 << 20
    assert save < 96 << 20 or name == "torch"
