"""Storage for torch.distributed.checkpoint: plain bytes in one file per rank, and metadata as JSON."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

from rlcore_plugin_torch.tensor_files import TensorFiles, dense
from torch import Tensor
from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex
from torch.distributed.checkpoint.planner import LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItem
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
from torch.futures import Future

from rlcore.state import bytes_of, pieces
from rlcore_plugin_dcp import metadata as described
from rlcore_plugin_dcp.metadata import Chunk

# so that what is read can be mapped
_ALIGNMENT: Final = 64


def _finished(value: Any) -> Any:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


class FileWriter(StorageWriter):
    """Writes what a plan says into the file of this rank; the coordinator writes the metadata.

    Args:
        folder: exists, the same for every rank.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = ""

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Do nothing: a writer is for one checkpoint."""

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Take the name of the file of this rank."""
        self._file = f"{kwargs.get('rank', 0)}{described.DATA}"

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Return the plan as it is."""
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Return the plans as they are."""
        return plans

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Write the tensors of this rank.

        Raises:
            OSError: the device is full, read-only or failing.
            StorageError: a tensor is not dense, or has no data.
        """
        with (self._folder / self._file).open("wb", buffering=0) as stream:
            results = [self._write(stream, item, planner) for item in plan.items]
        return _finished(results)  # type: ignore[no-any-return]

    def _write(self, stream: BinaryIO, item: WriteItem, planner: SavePlanner) -> WriteResult:
        content = bytes_of(dense(item.index.fqn, planner.resolve_data(item)))  # type: ignore[arg-type]
        _write_whole(stream, bytes(-stream.tell() % _ALIGNMENT))
        place = (self._file, stream.tell(), len(content))
        for piece in pieces(content):
            _write_whole(stream, piece)
        return WriteResult(item.index, len(content), place)

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Write the metadata."""
        places = {result.index: result.storage_data for of_rank in results for result in of_rank}
        described.write(self._folder, metadata, places)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Return False: writers are made for a folder, not chosen by its name."""
        return False


def _write_whole(stream: BinaryIO, content: Any) -> None:
    while len(content):
        content = content[stream.write(content) :]


def _fill(target: Tensor, item: ReadItem, chunk: Chunk, files: TensorFiles) -> None:
    """Read a part of a chunk, or the whole of it, which needs no further memory where the target is contiguous."""
    is_whole = tuple(item.lengths) == chunk.form.shape and target.dtype == chunk.form.dtype
    if is_whole and target.device.type == "cpu" and target.is_contiguous():
        files.read_into(target, chunk.file, chunk.offset, chunk.size)
        return
    part = files.tensor(chunk.form, chunk.file, chunk.offset, chunk.size)
    for dimension, (offset, length) in enumerate(zip(item.storage_offsets, item.lengths, strict=True)):
        part = part.narrow(dimension, offset, length)
    target.copy_(part)


class FileReader(StorageReader):
    """Reads what a plan says, from whatever ranks wrote it.

    Args:
        folder: of the checkpoint.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._chunks: Mapping[MetadataIndex, Chunk] = {}

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Do nothing: a reader is for one checkpoint."""

    def read_metadata(self, *args: Any) -> Metadata:
        """Return the metadata, from JSON.

        Raises:
            Exception: of any kind, when it was not written by the writer.
        """
        saved = described.read(self._folder)
        self._chunks = {
            MetadataIndex(name, chunk.offsets): chunk for name, entry in saved.items() for chunk in entry.chunks
        }
        return described.as_planned(saved)

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any) -> None:
        """Do nothing."""

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """Return the plan as it is."""
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """Return the plans as they are."""
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read what the plan says.

        Raises:
            Exception: of any kind, when the files do not fit the metadata.
        """
        files = TensorFiles(self._folder)
        for item in plan.items:
            target = planner.resolve_tensor(item).detach()
            _fill(target, item, self._chunks[item.storage_index], files)
            planner.commit_tensor(item, target)
        return _finished(None)  # type: ignore[no-any-return]

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Return False: readers are made for a folder, not chosen by its name."""
        return False
