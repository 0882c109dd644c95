"""The latest rows of a stream in a ring of fixed size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rlcore.errors import RlcoreError, StorageError
from rlcore.state import copy_in_pieces
from rlcore.types import Key
from rlcore_plugin_replay.layout import RowLayout

if TYPE_CHECKING:
    from rlcore.types import Array


class Ring:
    """Keeps packed rows; a new row overwrites the oldest.

    Args:
        capacity: number of rows.
        allocate: returns zeros `[row, word]` for a shape; called at the first rows.

    Attributes:
        capacity: number of rows.
        allocate: the argument.
        written: number of rows written so far, over all resumes.
        layout: of a row; None before the first rows.
        columns: views of the entries of all rows, key to `[row, *shape]`.
    """

    def __init__(self, capacity: int, allocate: Callable[[tuple[int, int]], Tensor]) -> None:
        self.capacity = capacity
        self.written = 0
        self.layout: RowLayout | None = None
        self.allocate = allocate
        self._rows = torch.zeros(0, 0, dtype=torch.int64)
        self._array: Array | None = None
        self.columns: dict[Key, Tensor] = {}

    def __len__(self) -> int:
        return min(self.written, self.capacity)

    def begin(self, layout: RowLayout) -> None:
        """Allocate rows of a layout.

        Raises:
            StorageError: there is no room for them.
        """
        self.layout = layout
        self._rows = self.allocate((self.capacity, layout.words))
        self._array = self._rows.numpy() if self._rows.device.type == "cpu" else None
        self.columns = {key: layout.view(self._rows, key) for key in layout.keys}

    def write(self, packed: Array) -> None:
        """Write packed rows `[row, word]` of host memory; of more than there is room for, the last are kept."""
        rows, capacity = self._array, self.capacity
        assert rows is not None
        count = len(packed)
        if count > capacity:
            self.written += count - capacity
            packed, count = packed[-capacity:], capacity
        begin = self.written % capacity
        end = begin + count
        if end <= capacity:
            rows[begin:end] = packed
        else:
            rows[begin:] = packed[: capacity - begin]
            rows[: end - capacity] = packed[capacity - begin :]
        self.written += count

    def extend(self, columns: Mapping[Key, Tensor]) -> None:
        """Write rows by column, on any device; of more rows than there is room for, the last are kept.

        Args:
            columns: key to `[row, *shape]`, which fit the layout.
        """
        count = next(iter(columns.values())).shape[0]
        spare = max(0, count - self.capacity)
        start, count = self.written + spare, count - spare
        begin = start % self.capacity
        first = min(count, self.capacity - begin)
        for key, column in columns.items():
            places = self.columns[key]
            places[begin : begin + first] = column[spare : spare + first]
            if first < count:
                places[: count - first] = column[spare + first :]
        self.written = start + count

    def put(self, index: Tensor, columns: Mapping[Key, Tensor]) -> None:
        """Write rows at places `[row]`; entries that are not given become 0.

        Args:
            index: no place twice.
            columns: key to `[row, *shape]`, which fit the layout.
        """
        if len(columns) < len(self.columns):
            self._rows[index] = 0
        for key, column in columns.items():
            self.columns[key][index] = column.to(self._rows.device)

    def rows(self, index: Tensor) -> Tensor:
        """Return copies `[sample, word]` of the rows at these places."""
        return self._rows.index_select(0, index)

    def reader(self, index: Tensor) -> Callable[[Key], Tensor]:
        """Return what finds an entry `[sample, *shape]` of the rows at these places by its key.

        The rows are copied when it is first called, which raises an `RlcoreError` once others were written.
        """
        written = self.written
        read: Callable[[Key], Tensor] | None = None

        def first(key: Key) -> Tensor:
            nonlocal read
            if read is None:
                if self.written != written:
                    raise RlcoreError(
                        f"the entry {key!r} of a minibatch is read for the first time after further transitions were "
                        "written, maybe over those that it had; read it before the next batch is added"
                    )
                assert self.layout is not None
                read = self.layout.reader(self.rows(index))
            return read(key)

        return first

    def state_dict(self) -> dict[str, Any]:
        """Return the rows that are filled, as a view that shares no storage with what is not."""
        state: dict[str, Any] = {"capacity": self.capacity, "written": self.written}
        if self.layout is not None:
            filled = self._rows[: len(self)]
            if filled.device.type == "cpu":  # through NumPy, whose view is a storage of its own size, not a copy
                filled = torch.from_numpy(filled.numpy())
            state |= {"layout": self.layout.state_dict(), "rows": filled}
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take the rows back.

        Raises:
            StorageError: they are those of a ring of another size, or there is no room.
        """
        if state["capacity"] != self.capacity:
            raise StorageError(
                f"the replay buffer of the checkpoint holds {state['capacity']:,} transitions, and this one "
                f"{self.capacity:,}; set [buffer] capacity = {state['capacity']}, or start it over with --fresh buffer"
            )
        self.written = 0
        if "layout" in state:
            layout = RowLayout.from_state(state["layout"])
            if self.layout is None or layout.entries != self.layout.entries:
                self.begin(layout)
            copy_in_pieces(self._rows[: state["rows"].shape[0]], state["rows"])
        else:
            self.layout = None
        self.written = state["written"]
