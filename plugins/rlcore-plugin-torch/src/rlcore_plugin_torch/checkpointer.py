"""Tensors in one `.pt` file that `torch.load` opens, read here without unpickling anything."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import torch
from pydantic import BaseModel
from torch import Tensor

from rlcore.errors import StorageError
from rlcore.files import plain_file
from rlcore.types import Checkpointer, Context
from rlcore_plugin_torch.tensor_files import Form, TensorFiles, dense, read_description, write_description

TENSORS: Final = "tensors.pt"
INDEX: Final = "tensors.json"


class TorchCheckpointer(Checkpointer):
    """Writes `tensors.pt`, and beside it `tensors.json`: which record of the file holds which tensor.

    The records of a `.pt` file are plain bytes in a zip archive, so with the index no pickle needs to be read.
    """

    class Config(BaseModel, extra="forbid"):
        """Nothing to configure."""

    def __init__(self, config: Config, context: Context) -> None:
        del config, context

    def save(self, folder: Path, tensors: Mapping[str, Tensor]) -> None:
        """Write both files.

        Raises:
            StorageError: a tensor is not dense, or has no data.
        """
        taken: set[int] = set()
        compact = {name: _compact(name, tensor, taken) for name, tensor in tensors.items()}
        with (folder / TENSORS).open("wb") as stream, _without_crc32():
            torch.save(compact, stream)
        # torch.save numbers the records in the order in which it meets new storages
        index = {
            name: {"record": str(number), **Form.of(tensor).described()}
            for number, (name, tensor) in enumerate(compact.items())
        }
        write_description(folder / INDEX, index)

    def load(self, folder: Path) -> dict[str, Tensor]:
        """Return the tensors, mapped from the file; writing into them does not change it.

        Raises:
            StorageError: the files are missing or do not fit together.
        """
        try:
            index = read_description(folder / INDEX)
            places, files = _records(folder / TENSORS), TensorFiles(folder)
            return {
                name: files.tensor(Form.read(entry), TENSORS, *places[entry["record"]]) for name, entry in index.items()
            }
        except Exception as error:  # what was made to harm raises anything, RecursionError and struct.error too
            raise StorageError(
                f"{folder / TENSORS} and {INDEX} do not fit together: {type(error).__name__}: {error}"
            ) from error


@contextmanager
def _without_crc32() -> Iterator[None]:
    """Leave out the zip archive's own checksums: they cost as much as writing, and the manifest has better ones."""
    before = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(False)
    try:
        yield
    finally:
        torch.serialization.set_crc32_options(before)


def _compact(name: str, tensor: Tensor, taken: set[int]) -> Tensor:
    """Return a dense tensor whose storage holds it and nothing else: itself where that is so, else a copy.

    Args:
        name: for the message.
        tensor: of any layout and device.
        taken: the storages that were returned already.
    """
    plain = dense(name, tensor)
    storage = plain.untyped_storage()
    if storage.nbytes() != plain.nbytes or storage.data_ptr() in taken:
        plain = plain.clone()
        storage = plain.untyped_storage()
    taken.add(storage.data_ptr())
    return plain


def _records(file: Path) -> dict[str, tuple[int, int]]:
    """Return name to (offset, size) of the tensor records of a `.pt` file; those that are compressed do not count."""
    places = {}
    with plain_file(file) as stream, zipfile.ZipFile(stream) as archive:
        for info in archive.infolist():
            folder, _, name = info.filename.rpartition("/")
            if not folder.endswith("/data") or info.compress_type != zipfile.ZIP_STORED:
                continue
            stream.seek(info.header_offset + 26)
            name_length, extra_length = struct.unpack("<HH", stream.read(4))
            places[name] = (info.header_offset + 30 + name_length + extra_length, info.file_size)
    return places
