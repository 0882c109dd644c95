"""Tensors as ranges of bytes in plain files: made dense before writing, mapped or read afterwards, never unpickled.

Every back end describes its ranges in JSON; what such a description says is checked here before it is believed.
"""

from __future__ import annotations

import json
import math
import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from rlcore.errors import StorageError
from rlcore.files import plain_file
from rlcore.state import bytes_of, dtype_of, pieces

__all__ = ["Form", "TensorFiles", "dense", "read_description", "write_description"]

# of a description, which is read whole into memory; a tensor takes about a hundred bytes
MOST_BYTES: Final = 256 << 20
# of what may be mapped; kernels of torch read other addresses wrongly, or not at all
_ALIGNMENT: Final = 64


@dataclass(frozen=True)
class Form:
    """Type and shape of a tensor."""

    dtype: torch.dtype
    shape: tuple[int, ...]

    @classmethod
    def of(cls, tensor: Tensor) -> Form:
        """Return the form of a tensor."""
        return cls(tensor.dtype, tuple(tensor.shape))

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> Form:
        """Return the form that the keys `dtype` and `shape` of an entry of JSON say.

        Raises:
            ValueError: they say none.
        """
        dtype, shape = dtype_of(entry["dtype"]), entry["shape"]
        if not all(type(size) is int and 0 <= size < 2**63 for size in shape):
            raise ValueError(f"{shape!r} is no shape")
        return cls(dtype, tuple(shape))

    def described(self) -> dict[str, Any]:
        """Return what `read` takes."""
        return {"dtype": str(self.dtype).removeprefix("torch."), "shape": list(self.shape)}

    @property
    def nbytes(self) -> int:
        """Bytes of a dense tensor of this form."""
        return math.prod(self.shape) * self.dtype.itemsize


def dense(name: str, tensor: Tensor) -> Tensor:
    """Return a contiguous tensor on the CPU with the same elements: itself where it is so, else a copy.

    Raises:
        StorageError: it is not dense, or has no data.
    """
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_nested or tensor.is_meta:
        kind = f"{tensor.layout}, {tensor.dtype} on {tensor.device}"
        raise StorageError(f"the tensor {name!r} is {kind}: this back end takes dense tensors with data only")
    return tensor.detach().resolve_conj().resolve_neg().to("cpu").contiguous()


def write_description(file: Path, described: Mapping[str, Any]) -> None:
    """Write a description as JSON.

    Raises:
        StorageError: it is larger than what would be read again.
    """
    text = json.dumps(described)
    if len(text) > MOST_BYTES:
        raise StorageError(f"{len(described):,} tensors are too many: {file.name} would have {len(text):,} bytes")
    file.write_text(text)


def read_description(file: Path) -> Any:
    """Return the JSON of a file.

    Raises:
        StorageError: it is no plain file, or larger than any that was written.
        ValueError: it is not JSON.
    """
    with plain_file(file) as stream:
        content = stream.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise StorageError(f"{file.name} has more than {MOST_BYTES:,} bytes")
    return json.loads(content)


class TensorFiles:
    """The files of one folder, for taking tensors out of them.

    Args:
        folder: where they are; nothing outside of it is opened.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mapped: dict[str, Any] = {}

    def tensor(self, form: Form, file: str, offset: int, size: int) -> Tensor:
        """Return the tensor of a range of bytes, mapped where that begins at a multiple of 64, else copied.

        Writing into it does not change the file.

        Args:
            form: its type and shape.
            file: name of the file.
            offset: where it begins.
            size: bytes that the description says it has.

        Raises:
            StorageError: `file` is not a plain file of the folder.
            ValueError: the range is not in the file, or not of the size of such a tensor.
        """
        self._check_range(form.nbytes, file, offset, size)
        if size == 0:
            return torch.empty(form.shape, dtype=form.dtype)
        content = self._content(file)
        if offset + size > len(content):
            raise ValueError(f"{file} ends before {offset + size:,} bytes")
        flat = torch.from_numpy(content[offset : offset + size])
        if offset % _ALIGNMENT:
            flat = flat.clone()
        return flat.view(form.dtype).reshape(form.shape)

    def read_into(self, tensor: Tensor, file: str, offset: int, size: int) -> None:
        """Fill a contiguous CPU tensor from a range of bytes, without further memory.

        Raises:
            StorageError: `file` is not a plain file of the folder.
            ValueError: the range is not in the file, or not of the size of the tensor.
        """
        self._check_range(tensor.nbytes, file, offset, size)
        if size == 0:
            return
        with plain_file(self._folder / file) as stream:
            stream.seek(offset)
            for piece in pieces(bytes_of(tensor)):
                if stream.readinto(piece) != len(piece):  # type: ignore[attr-defined]
                    raise ValueError(f"{file} ends before {offset + size:,} bytes")

    def _check_range(self, needed: int, file: str, offset: int, size: int) -> None:
        if not isinstance(file, str) or Path(file).name != file:
            raise ValueError(f"{file!r} is not the name of a file in the folder")
        if type(offset) is not int or type(size) is not int or offset < 0 or size != needed:
            raise ValueError(f"{file} is said to hold {size!r} bytes at {offset!r}, where {needed:,} are needed")

    def _content(self, file: str) -> Any:
        if file not in self._mapped:
            with plain_file(self._folder / file) as stream:
                mapping = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)
            self._mapped[file] = np.frombuffer(mapping, np.uint8)
        return self._mapped[file]
