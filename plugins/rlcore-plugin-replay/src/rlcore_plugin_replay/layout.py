"""The layout of a packed row: where each entry of a transition lies, so that one gather fetches all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import torch
from torch import Tensor

from rlcore.errors import RlcoreError
from rlcore.types import Key

WORD: Final = torch.int64
Entry: TypeAlias = tuple[torch.dtype, tuple[int, ...]]  # dtype and shape of one transition


@dataclass(frozen=True)
class _Field:
    """Where an entry lies in a row: elements `begin` to `end`, counted in its own dtype."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    begin: int
    end: int


class RowLayout:
    """Entries of any dtype side by side in a row of 64-bit words, the widest dtypes first.

    Args:
        entries: key to (dtype, shape of one transition).

    Attributes:
        entries: the same.
        keys: of the entries.
        words: length of a row.
    """

    def __init__(self, entries: Mapping[Key, Entry]) -> None:
        self.entries = dict(entries)
        self.keys = tuple(entries)
        self._fields: dict[Key, _Field] = {}
        offset = 0
        for key, (dtype, shape) in sorted(self.entries.items(), key=lambda item: -item[1][0].itemsize):
            begin = offset // dtype.itemsize  # whole, since every width divides the wider ones before it
            end = begin + math.prod(shape)
            self._fields[key] = _Field(dtype, shape, begin, end)
            offset = end * dtype.itemsize
        self.words = -(-offset // WORD.itemsize)
        self._places = {key: self._place(key) for key in self.keys}

    @classmethod
    def of(cls, columns: Mapping[Key, Tensor], dims: int = 1) -> RowLayout:
        """Return the layout for columns `[*batch, *shape]` with so many dimensions of the batch."""
        return cls(entries_of(columns, dims))

    @classmethod
    def joined(cls, parts: Sequence[RowLayout], keys: Sequence[Key]) -> RowLayout:
        """Return the layout of rows whose words are those of several layouts, one behind the other.

        Args:
            parts: with other keys each.
            keys: of all of them, in the order in which they are told.
        """
        entries = {key: entry for part in parts for key, entry in part.entries.items()}
        layout = cls({key: entries[key] for key in keys})
        layout.words = 0
        for part in parts:
            for key, part_field in part._fields.items():
                by = layout.words * (WORD.itemsize // part_field.dtype.itemsize)
                layout._fields[key] = replace(part_field, begin=part_field.begin + by, end=part_field.end + by)
            layout.words += part.words
        layout._places = {key: layout._place(key) for key in keys}
        return layout

    def view(self, rows: Tensor, key: Key) -> Tensor:
        """Return one entry `[row, *shape]` of packed rows `[row, words]`, in the same memory."""
        field = self._fields[key]
        column = rows.view(field.dtype)[:, field.begin : field.end]
        return column if len(field.shape) == 1 else column.view(rows.shape[0], *field.shape)

    def views(self, rows: Tensor) -> dict[Key, Tensor]:
        """Return every entry `[row, *shape]` of packed rows `[row, words]`, in the same memory."""
        read = self.reader(rows)
        return {key: read(key) for key in self.keys}

    def reader(self, rows: Tensor) -> Callable[[Key], Tensor]:
        """Return what finds an entry `[row, *shape]` of packed rows `[row, words]`, in the same memory, by its key.

        The places are known, so that each takes one operation: slices and shapes would cost twice as much.
        """
        count, offset, places = rows.shape[0], int(rows.storage_offset()), self._places
        of_dtype: dict[torch.dtype, Tensor] = {}

        def read(key: Key) -> Tensor:
            dtype, shape, strides, begin = places[key]
            if dtype not in of_dtype:
                of_dtype[dtype] = rows.view(dtype)
            begin += offset * (WORD.itemsize // dtype.itemsize)
            return of_dtype[dtype].as_strided((count, *shape), strides, begin)

        return read

    def check(self, entries: Mapping[Key, Entry]) -> None:
        """Refuse entries that would not fit.

        Raises:
            RlcoreError: keys, dtypes or shapes differ from those of the first batch.
        """
        if entries == self.entries:
            return
        wrong = [key for key in {**self.entries, **entries} if self.entries.get(key) != entries.get(key)]
        differences = "; ".join(
            f"{key!r} is {described(entries.get(key))}, and was {described(self.entries.get(key))}" for key in wrong
        )
        raise RlcoreError(
            f"a batch does not fit the rows of the replay buffer: {differences}. All batches of a run need the same "
            "entries; look for a hook that adds, leaves out or converts one."
        )

    def _place(self, key: Key) -> tuple[torch.dtype, tuple[int, ...], tuple[int, ...], int]:
        """Return dtype, shape and strides of an entry, and where its first element lies, counted in its dtype."""
        field = self._fields[key]
        strides = [1]
        for length in reversed(field.shape[1:]):
            strides.append(strides[-1] * length)
        inner = tuple(reversed(strides)) if field.shape else ()
        return field.dtype, field.shape, (self.words * (WORD.itemsize // field.dtype.itemsize), *inner), field.begin

    def state_dict(self) -> list[list[Any]]:
        """Return `[key, dtype, shape]` of each entry."""
        return [
            [list(key) if isinstance(key, tuple) else key, str(dtype).removeprefix("torch."), list(shape)]
            for key, (dtype, shape) in self.entries.items()
        ]

    @classmethod
    def from_state(cls, state: list[list[Any]]) -> RowLayout:
        """Return the layout of `state_dict()`."""
        return cls(
            {
                tuple(key) if isinstance(key, list) else key: (getattr(torch, dtype), tuple(shape))
                for key, dtype, shape in state
            }
        )


def entries_of(columns: Mapping[Key, Tensor], dims: int = 1) -> dict[Key, Entry]:
    """Return dtype and shape of the entries of one transition, from columns `[*batch, *shape]`."""
    return {key: (column.dtype, tuple(column.shape[dims:])) for key, column in columns.items()}


def described(entry: Entry | None) -> str:
    """Return an entry in words."""
    return "absent" if entry is None else f"{str(entry[0]).removeprefix('torch.')} {list(entry[1])}"
