"""Tensors by torch.distributed.checkpoint: from one process or several ranks, for as many or for others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
import torch.distributed
from pydantic import BaseModel
from rlcore_plugin_torch.tensor_files import Form, TensorFiles
from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

from rlcore.errors import StorageError
from rlcore.types import Checkpointer, Context
from rlcore_plugin_dcp import metadata
from rlcore_plugin_dcp.metadata import Saved
from rlcore_plugin_dcp.rank_files import FileReader, FileWriter


class DcpCheckpointer(Checkpointer):
    """Writes `N.bin` for each rank N, and `metadata.json`.

    In a run whose ranks train together (`[ranks]`), the first has the state of all of them and saves it alone, whatever
    process group somebody has initialised. Anywhere else, where the default group of `torch.distributed` is
    initialised, every rank calls `save` and `load_into` at the same time with the same folder and names. A plain tensor
    is taken to be the same on all ranks and is written once; of a `DTensor` each rank writes and reads its part.
    """

    class Config(BaseModel, extra="forbid"):
        """Nothing to configure."""

    def __init__(self, config: Config, context: Context | None) -> None:
        self._alone = context is not None and context.group.size > 1

    def save(self, folder: Path, tensors: Mapping[str, Tensor]) -> None:
        """Write the files of all ranks.

        Raises:
            OSError: the device is full, read-only or failing; for several ranks a StorageError.
            StorageError: a tensor is not dense, or has no data; or a rank failed, which every rank is told.
        """
        writer, planner = FileWriter(folder), DefaultSavePlanner(flatten_state_dict=False)
        if self._alone or not _default_group():
            _save_alone(dict(tensors), writer, planner)
            return
        try:
            save(dict(tensors), storage_writer=writer, planner=planner)
        except CheckpointException as error:
            raise _failure_of_ranks("save", folder, error) from error

    def load(self, folder: Path) -> dict[str, Tensor]:
        """Return all tensors as a whole, in this process alone: mapped, or put together from what the ranks wrote.

        Raises:
            StorageError: the files are missing or do not fit together.
        """
        try:
            files = TensorFiles(folder)
            return {name: _whole(saved, files) for name, saved in metadata.read(folder).items()}
        except Exception as error:  # what was made to harm raises anything
            raise StorageError(f"the files of {folder} do not fit together: {type(error).__name__}: {error}") from error

    def load_into(self, folder: Path, tensors: Mapping[str, Tensor]) -> None:
        """Fill tensors with what is saved under their names; of a `DTensor`, the part of this rank.

        Raises:
            StorageError: the files are missing or do not fit together, a tensor has another form than is saved, or a
                rank failed, which every rank is told.
        """
        reader, planner = FileReader(folder), DefaultLoadPlanner(flatten_state_dict=False)
        try:
            _check_forms(metadata.read(folder), tensors)
            if self._alone or not _default_group():
                _load_alone(dict(tensors), reader, planner)
            else:
                load(dict(tensors), storage_reader=reader, planner=planner)
        except CheckpointException as error:
            raise _failure_of_ranks("load", folder, error) from error
        except Exception as error:
            raise StorageError(f"the files of {folder} do not fit together: {type(error).__name__}: {error}") from error


def _default_group() -> bool:
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def _save_alone(tensors: dict[str, Tensor], writer: FileWriter, planner: DefaultSavePlanner) -> None:
    """Do what torch's `save` does, which warns in each process that is alone."""
    planner.set_up_planner(tensors, is_coordinator=True)
    writer.set_up_storage_writer(True)
    plans, planned = planner.create_global_plan([planner.create_local_plan()])
    results = writer.write_data(planner.finish_plan(plans[0]), planner).value()
    writer.finish(planned, [results])


def _load_alone(tensors: dict[str, Tensor], reader: FileReader, planner: DefaultLoadPlanner) -> None:
    planner.set_up_planner(tensors, reader.read_metadata(), is_coordinator=True)
    reader.read_data(planner.create_local_plan(), planner)


def _check_forms(saved: Mapping[str, Saved], tensors: Mapping[str, Tensor]) -> None:
    for name, tensor in tensors.items():
        if saved[name].form != Form.of(tensor):
            raise ValueError(f"{name!r} is saved as {saved[name].form}")


def _whole(saved: Saved, files: TensorFiles) -> Tensor:
    if saved.whole is not None:
        chunk = saved.whole
        return files.tensor(chunk.form, chunk.file, chunk.offset, chunk.size)
    whole = torch.zeros(saved.form.shape, dtype=saved.form.dtype)
    for chunk in saved.chunks:
        part = whole
        for dimension, (offset, length) in enumerate(zip(chunk.offsets, chunk.form.shape, strict=True)):
            part = part.narrow(dimension, offset, length)
        part.copy_(files.tensor(chunk.form, chunk.file, chunk.offset, chunk.size))
    return whole


def _failure_of_ranks(what: str, folder: Path, error: CheckpointException) -> StorageError:
    failures = "; ".join(f"rank {rank}: {failure[0]}" for rank, failure in sorted(error.failures.items()))
    return StorageError(f"the {what} of several ranks in {folder} failed: {failures}")
