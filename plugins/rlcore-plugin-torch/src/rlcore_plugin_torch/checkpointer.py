"""Tensors in one `.pt` file that `torch.load` opens, read here without unpickling anything."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
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


class TorchCheckpointer:
    """Writes `tensors.pt`, and beside it `tensors.json`: which record of the file holds which tensor.

    The records of a `.pt` file are plain bytes in a zip archive, so with the index no pickle needs to be read.
    """

    class Config(BaseModel, extra="forbid"):
        """Nothing to configure."""

    def __init__(self, config: Config, context: Context) -> None:
        del config, context

    def save(self, folder: Path, tensors: Mapping[str, Tensor]) -> None:
        """Write both files and fsync them."""
        # torch.save numbers the records in the order in which it meets new storages
        compact = {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in tensors.items()}
        with (folder / TENSORS).open("wb") as stream:
            torch.save(compact, stream)
            stream.flush()
            os.fsync(stream.fileno())
        index = {
            name: {
                "record": str(number),
                "dtype": str(tensor.dtype).removeprefix("torch."),
                "shape": list(tensor.shape),
            }
            for number, (name, tensor) in enumerate(compact.items())
        }
        with (folder / INDEX).open("w") as text:
            json.dump(index, text)
            text.flush()
            os.fsync(text.fileno())

    def load(self, folder: Path) -> dict[str, Tensor]:
        """Return the tensors, mapped from the file; writing into them does not change it.

        Raises:
            StorageError: the files do not fit together.
        """
        try:
            index = json.loads((folder / INDEX).read_text())
            places = _records(folder / TENSORS)
            content = np.memmap(folder / TENSORS, mode="c", dtype=np.uint8)
            return {name: _tensor(content, places, entry) for name, entry in index.items()}
        except (zipfile.BadZipFile, KeyError, ValueError, TypeError, AttributeError, RuntimeError) as error:
            raise StorageError(f"{folder / TENSORS} and {INDEX} do not fit together: {error}") from error


def _records(file: Path) -> dict[str, tuple[int, int]]:
    """Return name to (offset, size) of the tensor records of a `.pt` file."""
    places = {}
    with zipfile.ZipFile(file) as archive, file.open("rb") as stream:
        for info in archive.infolist():
            folder, _, name = info.filename.rpartition("/")
            if not folder.endswith("/data") or info.compress_type != zipfile.ZIP_STORED:
                continue
            stream.seek(info.header_offset + 26)
            name_length, extra_length = np.frombuffer(stream.read(4), dtype="<u2").tolist()
            places[name] = (info.header_offset + 30 + name_length + extra_length, info.file_size)
    return places


def _tensor(content: Any, places: Mapping[str, tuple[int, int]], entry: Mapping[str, Any]) -> Tensor:
    dtype = getattr(torch, entry["dtype"])
    shape = [int(size) for size in entry["shape"]]
    if 0 in shape:
        return torch.empty(shape, dtype=dtype)
    offset, size = places[entry["record"]]
    flat = torch.from_numpy(content[offset : offset + size])
    return flat.view(dtype).reshape(shape)
