"""One rank of several, a process of its own: `rank.py RANK RANKS STORE FOLDER save|load|fail|damaged|first`."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import torch
import torch.distributed as dist
from rlcore_plugin_dcp.checkpointer import DcpCheckpointer
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

from rlcore.errors import StorageError
from rlcore.types import Context

rank, ranks, store, folder, what = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], Path(sys.argv[4]), sys.argv[5]
os.environ["GLOO_SOCKET_IFNAME"] = "lo"
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
mesh = init_device_mesh("cpu", (ranks,))
context = None
if what == "first":  # a rank of a run
    context = replace(Context.alone("run"), group=SimpleNamespace(rank=rank, size=ranks))
backend = DcpCheckpointer(DcpCheckpointer.Config(), context)


def tensors(fill):
    """What is saved: cut along rows, along columns, in parts of unequal size, and the same everywhere."""

    def cut(shape, placement, dtype=torch.float32):
        whole = (
            torch.arange(torch.Size(shape).numel()).reshape(shape).to(dtype) if fill else torch.zeros(shape).to(dtype)
        )
        return distribute_tensor(whole, mesh, [placement])

    return {
        "rows": cut((12, 5), Shard(0)),
        "columns": cut((3, 7), Shard(1)),
        "unequal": cut((5,), Shard(0), torch.int64),
        "everywhere": cut((4,), Replicate(), torch.bfloat16),
        "plain": torch.full((2, 2), 7.0 if fill else 0.0),
        "step": torch.tensor(3 if fill else 0),
    }


if what == "save":
    backend.save(folder, tensors(True))
elif what == "first":
    if rank == 0:
        plain = {"plain": torch.full((2, 2), 7.0), "step": torch.tensor(3)}
        backend.save(folder, plain)
        found = {name: torch.zeros_like(tensor) for name, tensor in plain.items()}
        backend.load_into(folder, found)
        assert all(torch.equal(found[name], plain[name]) for name in plain)
    dist.barrier()
elif what == "load":
    found = tensors(False)
    backend.load_into(folder, found)
    for name, wanted in tensors(True).items():
        here, there = (getattr(value, "to_local", lambda value=value: value)() for value in (found[name], wanted))
        assert here.dtype == there.dtype, name
        assert torch.equal(here, there), name
else:
    try:
        backend.save(folder, tensors(True)) if what == "fail" else backend.load_into(folder, tensors(False))
    except StorageError as error:
        print(error)
    else:
        raise AssertionError("a rank failed, and nobody was told")
dist.destroy_process_group()
# threads of gloo may live on for a moment, and a process that ends by taking them down aborts
sys.stdout.flush()
os._exit(0)
