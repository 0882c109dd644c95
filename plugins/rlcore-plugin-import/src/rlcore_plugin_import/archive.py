"""Archives that other libraries wrote: which members they have, how large, and the tensors in them.

Nothing is unpacked onto the disk, and nothing is unpickled but by `torch.load(weights_only=True)`, which makes tensors
and plain containers alone.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rlcore.errors import FROM_OUTSIDE, ConfigError, StorageError, describe


def read_file(path: Path) -> bytes:
    """Return the bytes of a file.

    Raises:
        ConfigError: there is none.
    """
    if not path.is_file():
        raise ConfigError(f"there is no file {str(path)!r}")
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{str(path)!r} cannot be read: {error}") from error


def members_of(data: bytes, what: str) -> dict[str, bytes]:
    """Return the members of a zip archive by name.

    Args:
        data: the archive.
        what: it is, for messages.

    Raises:
        StorageError: it is none or damaged; a member is compressed or claims more bytes than the archive has, lies
            outside of it or is there twice.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            _check_entries(entries, len(data), what)
            return {entry.filename: archive.read(entry) for entry in entries}
    except StorageError:
        raise
    except (zipfile.BadZipFile, OSError, ValueError, EOFError, NotImplementedError, RuntimeError) as error:
        raise StorageError(f"{what} is no zip archive, or damaged: {error}") from None


def _check_entries(entries: list[zipfile.ZipInfo], size: int, what: str) -> None:
    names: set[str] = set()
    for entry in entries:
        parts = entry.filename.replace("\\", "/").split("/")
        if entry.filename.startswith("/") or ".." in parts or ":" in parts[0]:
            raise StorageError(f"{what} has a member {entry.filename!r}, which lies outside of the archive")
        if entry.filename in names:
            raise StorageError(f"{what} has two members {entry.filename!r}")
        names.add(entry.filename)
        if entry.compress_type != zipfile.ZIP_STORED:
            raise StorageError(f"{what}: member {entry.filename!r} is compressed, as no library writes it")
    if entries and min(entry.header_offset for entry in entries) != 0:
        raise StorageError(f"{what} is no zip archive, or damaged: it does not begin with its first member")
    if sum(entry.file_size for entry in entries) > size:
        raise StorageError(f"{what}: its members claim more bytes than the archive has")


def load_tensors(data: bytes, what: str) -> Any:
    """Return what `torch.save` wrote: tensors on the CPU in plain containers.

    Args:
        data: the file.
        what: it is, for messages.

    Raises:
        StorageError: it is none of torch's archives, has something else than that, or a tensor claims more numbers
            than are stored.
    """
    members_of(data, what)
    try:
        content = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except FROM_OUTSIDE:
        raise
    except BaseException as error:  # bytes that were made to harm raise anything
        raise StorageError(f"{what} has something else than tensors, and is not read: {_first_line(error)}") from None
    for tensor in _tensors_in(content):
        numbers = tensor.untyped_storage().nbytes() // max(1, tensor.element_size())
        if tensor.layout is not torch.strided or tensor.numel() > numbers:
            raise StorageError(f"{what} has a tensor of shape {list(tensor.shape)} over {numbers} numbers")
    return content


def _first_line(error: BaseException) -> str:
    return describe(error).splitlines()[0]


def _tensors_in(content: Any) -> Iterator[Tensor]:
    if isinstance(content, Tensor):
        yield content
    elif isinstance(content, Mapping):
        for value in content.values():
            yield from _tensors_in(value)
    elif isinstance(content, list | tuple):
        for value in content:
            yield from _tensors_in(value)


def as_state_dict(content: Any, what: str) -> dict[str, Tensor]:
    """Return the tensors by name of what should be a state dict.

    Raises:
        StorageError: it is none, or a tensor is not finite.
    """
    is_one = isinstance(content, Mapping) and content
    if not is_one or not all(isinstance(name, str) and isinstance(value, Tensor) for name, value in content.items()):
        raise StorageError(f"{what} is no state dict: tensors by name")
    for name, value in content.items():
        if value.is_floating_point() and not bool(torch.isfinite(value).all()):
            raise StorageError(f"{what}: {name!r} is not finite")
    return dict(content)
