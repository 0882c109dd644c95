"""A minibatch that says where its rows lie, so that a compiled update gathers what it reads of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import Tensor

from rlcore.buffers import Minibatch
from rlcore.types import Key, Rows


class RowMinibatch(Minibatch):
    """Some rows of columns that stay where they are: a compiled update gathers what it reads of them by itself.

    Args:
        columns: all rows by key, `[row, *shape]`; the same mapping for as long as they are the same tensors.
        places: of the rows that are meant, int64 `[sample]`.
        further: the keys of entries that are no columns.
        gather: returns the entry `[sample, ...]` of a column; called once per key at most.
    """

    __slots__ = ("_rows",)

    def __init__(
        self, columns: Mapping[Key, Tensor], places: Tensor, further: tuple[Key, ...], gather: Callable[[Key], Tensor]
    ) -> None:
        super().__init__(places.shape[0], (*columns, *further), gather)
        self._rows = Rows(columns, places)

    @property
    def rows(self) -> Rows | None:
        """Where they lie; None once an entry of the columns was read or replaced."""
        columns = self._rows.columns
        for key in dict.keys(self):
            if key in columns:
                return None
        return self._rows
