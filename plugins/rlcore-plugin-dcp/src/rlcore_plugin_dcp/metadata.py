"""What is saved where, as JSON: the metadata of torch.distributed.checkpoint without its pickle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from rlcore_plugin_torch.tensor_files import Form, read_description, write_description
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)

METADATA: Final = "metadata.json"
DATA: Final = ".bin"


@dataclass(frozen=True)
class Chunk:
    """A part of a tensor, and where it is.

    Attributes:
        form: type and shape of the part.
        offsets: where it lies in the tensor, per dimension.
        file: name of the file.
        offset: byte at which it begins there.
        size: bytes.
    """

    form: Form
    offsets: tuple[int, ...]
    file: str
    offset: int
    size: int


@dataclass(frozen=True)
class Saved:
    """A tensor, and the parts in which it was saved."""

    form: Form
    chunks: tuple[Chunk, ...]

    @property
    def whole(self) -> Chunk | None:
        """The only part, where the tensor was not cut."""
        return self.chunks[0] if len(self.chunks) == 1 and self.chunks[0].form == self.form else None


def write(folder: Path, metadata: Metadata, places: Mapping[MetadataIndex, tuple[str, int, int]]) -> None:
    """Write `metadata.json`.

    Args:
        folder: of the checkpoint.
        metadata: what the planner made; its tensors are described.
        places: part of a tensor to file, offset and bytes.
    """
    tensors = {}
    for name, saved in metadata.state_dict_metadata.items():
        assert isinstance(saved, TensorStorageMetadata), "a checkpointer gets tensors only"
        chunks = [_described(chunk, *places[MetadataIndex(name, chunk.offsets)]) for chunk in saved.chunks]
        tensors[name] = {**Form(saved.properties.dtype, tuple(saved.size)).described(), "chunks": chunks}
    write_description(folder / METADATA, tensors)


def _described(chunk: ChunkStorageMetadata, file: str, offset: int, size: int) -> dict[str, Any]:
    return {
        "offsets": list(chunk.offsets),
        "shape": list(chunk.sizes),
        "file": file,
        "offset": offset,
        "size": size,
    }


def read(folder: Path) -> dict[str, Saved]:
    """Return name to what is saved of it.

    Raises:
        Exception: of any kind, when it was not written by `write`.
    """
    tensors = {name: _saved(entry) for name, entry in read_description(folder / METADATA).items()}
    here = sum(file.stat().st_size for file in folder.glob(f"*{DATA}"))
    if sum(chunk.size for saved in tensors.values() for chunk in saved.chunks) > here:
        raise ValueError(f"{METADATA} names more bytes than the {here:,} that are there")
    return tensors


def as_planned(saved: Mapping[str, Saved]) -> Metadata:
    """Return the metadata that a planner of torch takes."""
    return Metadata({name: _storage(entry) for name, entry in saved.items()})


def _storage(saved: Saved) -> TensorStorageMetadata:
    chunks = [ChunkStorageMetadata(torch.Size(chunk.offsets), torch.Size(chunk.form.shape)) for chunk in saved.chunks]
    return TensorStorageMetadata(TensorProperties(dtype=saved.form.dtype), torch.Size(saved.form.shape), chunks)


def _saved(entry: Mapping[str, Any]) -> Saved:
    form = Form.read(entry)
    chunks = tuple(_chunk(form, chunk) for chunk in entry["chunks"])
    if sum(chunk.form.nbytes for chunk in chunks) != form.nbytes:
        raise ValueError(f"the parts of a tensor of {form} have not its size")
    return Saved(form, chunks)


def _chunk(whole: Form, entry: Mapping[str, Any]) -> Chunk:
    form = Form.read({"dtype": str(whole.dtype).removeprefix("torch."), "shape": entry["shape"]})
    offsets = tuple(entry["offsets"])
    if not _inside(offsets, form.shape, whole.shape):
        raise ValueError(f"a part of {form.shape} at {offsets} is not inside of {whole.shape}")
    if entry["size"] != form.nbytes:
        raise ValueError(f"a part of {form.shape} is said to have {entry['size']!r} bytes")
    if not entry["file"].endswith(DATA):
        raise ValueError(f"{entry['file']!r} is no file of tensors")
    return Chunk(form, offsets, entry["file"], entry["offset"], form.nbytes)


def _inside(offsets: Iterable[Any], sizes: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    offsets = tuple(offsets)
    return len(offsets) == len(sizes) == len(shape) and all(
        type(offset) is int and 0 <= offset <= most - size
        for offset, size, most in zip(offsets, sizes, shape, strict=True)
    )
