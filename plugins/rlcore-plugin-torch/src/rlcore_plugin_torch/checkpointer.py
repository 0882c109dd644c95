"""Tensors in one `.pt` file that `torch.load` opens, read here without unpickling anything."""

from __future__ import annotations

import json
import math
import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from pydantic import BaseModel
from torch import Tensor

from rlcore.context import Context
from rlcore.errors import StorageError

TENSORS: Final = "tensors.pt"
INDEX: Final = "tensors.json"
# read whole into memory; a tensor takes about a hundred bytes
_MOST_INDEX_BYTES: Final = 256 << 20


class TorchCheckpointer:
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
            name: {
                "record": str(number),
                "dtype": str(tensor.dtype).removeprefix("torch."),
                "shape": list(tensor.shape),
            }
            for number, (name, tensor) in enumerate(compact.items())
        }
        text = json.dumps(index)
        if len(text) > _MOST_INDEX_BYTES:
            raise StorageError(f"{len(index):,} tensors are too many: {INDEX} would have {len(text):,} bytes")
        with (folder / INDEX).open("w") as index_stream:
            index_stream.write(text)

    def load(self, folder: Path) -> dict[str, Tensor]:
        """Return the tensors, mapped from the file; writing into them does not change it.

        Raises:
            StorageError: the files are missing or do not fit together.
        """
        try:
            index = json.loads(_read_index(folder / INDEX))
            places = _records(folder / TENSORS)
            content = np.memmap(folder / TENSORS, mode="c", dtype=np.uint8)
            return {name: _tensor(content, places, entry) for name, entry in index.items()}
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
    """Return a tensor on the CPU whose storage holds it and nothing else: itself where that is so, else a copy.

    Args:
        name: for the message.
        tensor: of any layout and device.
        taken: the storages that were returned already.
    """
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_nested or tensor.is_meta:
        kind = f"{tensor.layout}, {tensor.dtype} on {tensor.device}"
        raise StorageError(f"the tensor {name!r} is {kind}: this back end takes dense tensors with data only")
    plain = tensor.detach().resolve_conj().resolve_neg().to("cpu").contiguous()
    storage = plain.untyped_storage()
    if storage.nbytes() != plain.nbytes or storage.data_ptr() in taken:
        plain = plain.clone()
        storage = plain.untyped_storage()
    taken.add(storage.data_ptr())
    return plain


def _read_index(file: Path) -> bytes:
    with file.open("rb") as stream:
        content = stream.read(_MOST_INDEX_BYTES + 1)
    if len(content) > _MOST_INDEX_BYTES:
        raise StorageError(f"{INDEX} has more than {_MOST_INDEX_BYTES:,} bytes")
    return content


def _records(file: Path) -> dict[str, tuple[int, int]]:
    """Return name to (offset, size) of the tensor records of a `.pt` file; those that are compressed do not count."""
    places = {}
    with zipfile.ZipFile(file) as archive, file.open("rb") as stream:
        for info in archive.infolist():
            folder, _, name = info.filename.rpartition("/")
            if not folder.endswith("/data") or info.compress_type != zipfile.ZIP_STORED:
                continue
            stream.seek(info.header_offset + 26)
            name_length, extra_length = struct.unpack("<HH", stream.read(4))
            places[name] = (info.header_offset + 30 + name_length + extra_length, info.file_size)
    return places


def _tensor(content: Any, places: Mapping[str, tuple[int, int]], entry: Mapping[str, Any]) -> Tensor:
    dtype, shape = getattr(torch, entry["dtype"], None), entry["shape"]
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"{entry['dtype']!r} is no type of tensors")
    if not all(type(size) is int and 0 <= size < 2**63 for size in shape):
        raise ValueError(f"{shape!r} is no shape")
    offset, size = places[entry["record"]]
    if size != math.prod(shape) * dtype.itemsize or offset + size > len(content):
        raise ValueError(f"the record {entry['record']!r} has {size} bytes at {offset}, not those of {shape} {dtype}")
    if size == 0:
        return torch.empty(shape, dtype=dtype)
    return torch.from_numpy(content[offset : offset + size]).view(dtype).reshape(shape)
