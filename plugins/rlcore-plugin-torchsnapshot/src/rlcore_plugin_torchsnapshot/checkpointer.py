"""Tensors in the files of a torchsnapshot, written with bounded memory, read without torchsnapshot or unpickling."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import torch
from pydantic import BaseModel
from rlcore_plugin_torch.tensor_files import Form, TensorFiles, dense, read_description, write_description
from torch import Tensor
from torchsnapshot.batcher import batch_write_requests
from torchsnapshot.io_preparers.tensor import TensorIOPreparer
from torchsnapshot.manifest import DictEntry, SnapshotMetadata
from torchsnapshot.scheduler import sync_execute_write_reqs
from torchsnapshot.serialization import BUFFER_PROTOCOL_SUPPORTED_DTYPES
from torchsnapshot.snapshot import SNAPSHOT_METADATA_FNAME
from torchsnapshot.version import __version__ as torchsnapshot_version

from rlcore.errors import StorageError
from rlcore.state import bytes_of
from rlcore.types import Checkpointer, Context
from rlcore_plugin_torchsnapshot.flat_files import FlatFiles, flat

METADATA: Final[str] = SNAPSHOT_METADATA_FNAME
INDEX: Final = "tensors.json"
# tensors stand under numbers: their names need not be those of files
PREFIX: Final = "0/tensors"
# small tensors share files of about this size
_SLAB_BYTES: Final = 16 << 20
# what torchsnapshot may have copied and not yet written
_BUDGET_BYTES: Final = 64 << 20


class TorchsnapshotCheckpointer(Checkpointer):
    """Writes a snapshot that `torchsnapshot.Snapshot` opens, and `tensors.json`: which of its entries is which tensor.

    Types that torchsnapshot would pickle, and bfloat16, are written as bytes; the index says what they are.
    """

    class Config(BaseModel, extra="forbid"):
        """Nothing to configure."""

    def __init__(self, config: Config, context: Context) -> None:
        del config, context
        logging.getLogger("torchsnapshot").setLevel(logging.WARNING)  # of its own it logs a table of every write

    def save(self, folder: Path, tensors: Mapping[str, Tensor]) -> None:
        """Write the snapshot and the index; beyond the tensors, 64 MiB are in use at once.

        Raises:
            OSError: the device is full, read-only or failing.
            StorageError: a tensor is not dense, or has no data.
        """
        index, entries, requests = {}, {}, []
        for number, (name, tensor) in enumerate(tensors.items()):
            plain = dense(name, tensor)
            index[name] = {"entry": str(number), **Form.of(plain).described()}
            if plain.numel():
                path = f"{PREFIX}/{number}"
                entries[path], of_this = TensorIOPreparer.prepare_write(path, _without_pickle(plain))
                requests += of_this
        _, requests = batch_write_requests(list(entries.values()), requests, _SLAB_BYTES)
        _execute(requests, FlatFiles(folder))
        for entry in entries.values():
            entry.location = flat(entry.location)
        keys = DictEntry([path.removeprefix(f"{PREFIX}/") for path in entries])
        metadata = SnapshotMetadata(torchsnapshot_version, 1, {PREFIX: keys, **entries})
        (folder / METADATA).write_text(metadata.to_yaml())
        write_description(folder / INDEX, index)

    def load(self, folder: Path) -> dict[str, Tensor]:
        """Return the tensors, mapped from the files; writing into them does not change these.

        Raises:
            StorageError: the files are missing or do not fit together.
        """
        try:
            files = TensorFiles(folder)
            return {name: files.tensor(form, *place) for name, (form, place) in _places(folder).items()}
        except Exception as error:  # what was made to harm raises anything
            raise _do_not_fit(folder, error) from error

    def load_into(self, folder: Path, tensors: Mapping[str, Tensor]) -> None:
        """Fill contiguous CPU tensors with what is saved under their names, without further memory.

        Raises:
            StorageError: the files are missing or do not fit together, or a tensor has another form than is saved.
        """
        try:
            files, places = TensorFiles(folder), _places(folder)
            for name, tensor in tensors.items():
                form, place = places[name]
                if form != Form.of(tensor):
                    raise ValueError(f"{name!r} is saved as {form}")
                files.read_into(tensor, *place)
        except Exception as error:
            raise _do_not_fit(folder, error) from error


def _do_not_fit(folder: Path, error: Exception) -> StorageError:
    return StorageError(f"the files of {folder} do not fit together: {type(error).__name__}: {error}")


def _without_pickle(tensor: Tensor) -> Tensor:
    """Return a tensor that torchsnapshot writes as plain bytes: itself, or its memory where it would pickle it.

    For a bfloat16 scalar torchsnapshot 0.1.0 writes nothing, so that type is written as bytes too.
    """
    if tensor.dtype in BUFFER_PROTOCOL_SUPPORTED_DTYPES and tensor.dtype != torch.bfloat16:
        return tensor
    return torch.from_numpy(bytes_of(tensor))


def _execute(requests: list[Any], storage: FlatFiles) -> None:
    if not requests:
        return
    loop = asyncio.new_event_loop()
    try:
        sync_execute_write_reqs(requests, storage, _BUDGET_BYTES, 0, loop).sync_complete(loop)
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def _places(folder: Path) -> dict[str, tuple[Form, tuple[str, int, int]]]:
    """Return name to form and to file, offset and size; both descriptions must agree on the size."""
    index, manifest = read_description(folder / INDEX), read_description(folder / METADATA)["manifest"]
    places = {}
    for name, said in index.items():
        form = Form.read(said)
        if form.nbytes == 0:
            places[name] = (form, ("", 0, 0))
            continue
        entry = manifest[f"{PREFIX}/{said['entry']}"]
        if entry["serializer"] != "buffer_protocol":
            raise ValueError(f"{name!r} is written as {entry['serializer']!r}, which is not read")
        begin, end = entry["byte_range"] or (0, form.nbytes)
        places[name] = (form, (entry["location"], begin, end - begin))
    return places
