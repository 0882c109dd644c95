"""The memory of transitions: packed rows with both observations, or rows that share them with the rows after them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import torch
from rlcore_plugin_replay.layout import RowLayout
from rlcore_plugin_replay.storage import StorageKind, allocate
from torch import Tensor

from rlcore.types import Key
from rlcore_plugin_datasets.transitions import STEPS, Columns

if TYPE_CHECKING:
    from rlcore_plugin_datasets.transitions import EpisodeColumns

_OWN, _NEXT = "observation", ("next", "observation")
# so many numbers of rows fit into 32 bits
_MOST: Final = 2**31 - 1


class Place(NamedTuple):
    """Where rows lie.

    Attributes:
        kind: the run's device, host memory, or a mapped file.
        device: of the run.
        folder: of the run.
    """

    kind: StorageKind
    device: torch.device
    folder: Path | None


class StoredRows:
    """Transitions in memory, numbered from 0 in the order of the data.

    Args:
        count: how many there should be; the data may have more or fewer.

    Attributes:
        layout: of a row that is taken.
        found: how many the data had.
    """

    layout: RowLayout
    _rows: Tensor

    def __init__(self, count: int) -> None:
        self._count = count
        self.found = 0

    def __len__(self) -> int:
        return self._count

    @property
    def device(self) -> torch.device:
        """Where they lie."""
        return self._rows.device

    @property
    def nbytes(self) -> int:
        """Bytes of the memory."""
        return self._rows.nbytes

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        """Return copies `[sample, word]` of so many rows, drawn uniformly and with replacement."""
        return self.take(torch.randint(self._count, (count,), generator=generator, device=self.device))

    def take(self, numbers: Tensor) -> Tensor:
        """Return copies `[sample, word]` of rows, by their numbers `[sample]`."""
        raise NotImplementedError

    def columns(self) -> Columns:
        """Return the entries of all rows, `[row, *shape]` by key."""
        raise NotImplementedError

    def begins(self) -> Tensor:
        """Return in which rows episodes begin, `[episode]`."""
        raise NotImplementedError


class PackedRows(StoredRows):
    """Each row has both observations, so that it is whatever joins or transforms made of it.

    Args:
        count: of rows.
        parts: their columns, in order; may be more or fewer rows than `count`.
        place: where they lie.
    """

    def __init__(self, count: int, parts: Iterable[Mapping[Key, Tensor]], place: Place) -> None:
        super().__init__(count)
        for columns in parts:
            if not self.found:
                self.layout = RowLayout.of(columns)
                self._rows = allocate(place.kind, (count, self.layout.words), place.device, place.folder)
                places = self.columns()
            start, self.found = self.found, self.found + columns["action"].shape[0]
            if self.found <= count:
                for key, view in places.items():
                    view[start : self.found].copy_(columns[key])

    def take(self, numbers: Tensor) -> Tensor:
        """Return copies `[sample, word]` of rows, by their numbers `[sample]`."""
        return self._rows.index_select(0, numbers)

    def columns(self) -> Columns:
        """Return the entries of all rows, `[row, *shape]` by key, in their memory."""
        return self.layout.views(self._rows)

    def begins(self) -> Tensor:
        """Return in which rows episodes begin, `[episode]`."""
        columns = self.columns()
        ends = columns["next", "done"].reshape(-1)
        if STEPS in columns:  # several steps end with an episode where they are joined; the last is the one of one step
            ends = ends & (columns[STEPS].reshape(-1) == 1)
        return torch.cat([ends.new_ones(1), ends[:-1]]).nonzero().reshape(-1)


class SharedRows(StoredRows):
    """Each row has its own observation, and the next one is that of the row behind it: an episode has a row more.

    A row that is taken reaches over the observation of the row behind it, so that one gather fetches all of a
    transition, in little more than half of the memory. Which row a transition is in says a table of 32 bits for each.

    Args:
        steps: how many.
        episodes: how many they are in.
        parts: the columns of some episodes at a time, in order; may have more or fewer steps than `steps`.
        place: where they lie.
    """

    def __init__(self, steps: int, episodes: int, parts: Iterable[Sequence[EpisodeColumns]], place: Place) -> None:
        super().__init__(steps)
        self._row = 0
        self._place = place
        self._all = steps + episodes
        for some in parts:
            if not self.found:
                self._allocate(some[0])
            self._add(some)
        if self.found:
            shape, strides = (self._all, self.layout.words), (self._stored.words, 1)
            self._reaching = self._rows.as_strided(shape, strides)
            self._numbers, self._begins = self._room(0)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows and of the table."""
        return super().nbytes + self._table.nbytes

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        """Return copies `[sample, word]` of so many rows, drawn uniformly and with replacement."""
        if self._numbers.shape[0] != count:
            self._numbers, self._begins = self._room(count)
        torch.randint(self._count, (count,), generator=generator, out=self._numbers, device=self.device)
        torch.index_select(self._table, 0, self._numbers, out=self._begins)
        return self._reaching.index_select(0, self._begins)

    def take(self, numbers: Tensor) -> Tensor:
        """Return copies `[sample, word]` of rows, by their numbers `[sample]`."""
        return self._reaching.index_select(0, self._table.index_select(0, numbers))

    def columns(self) -> Columns:
        """Return copies of the entries of all rows, `[row, *shape]` by key."""
        taken = self._reaching.index_select(0, self._table)
        return {key: column.clone() for key, column in self.layout.views(taken).items()}

    def begins(self) -> Tensor:
        """Return in which rows episodes begin, `[episode]`."""
        apart = self._table.diff() > 1
        return torch.cat([apart.new_ones(1), apart]).nonzero().reshape(-1)

    def _room(self, count: int) -> tuple[Tensor, Tensor]:
        """Return room for what is drawn, which is kept: to allocate it again would cost what the table does."""
        with torch.inference_mode(False):  # whoever draws first, others may draw later
            numbers = torch.empty(count, dtype=torch.int64, device=self.device)
            return numbers, torch.empty(count, dtype=self._table.dtype, device=self.device)

    def _allocate(self, first: EpisodeColumns) -> None:
        kind, device, folder = self._place
        entries = first.entries()
        own, following = RowLayout({_OWN: entries[_OWN]}), RowLayout({_NEXT: entries[_NEXT]})
        others = RowLayout({key: entry for key, entry in entries.items() if key not in (_OWN, _NEXT)})
        self._stored = RowLayout.joined([own, others], [_OWN, *others.keys])
        self.layout = RowLayout.joined([own, others, following], list(entries))
        # one row more, over which the last one reaches
        self._rows = allocate(kind, (self._all + 1, self._stored.words), device, folder)
        wide = self._all > _MOST
        words = self._count if wide else -(-self._count // 2)
        table = allocate(kind, (words, 1), device, folder).view(-1)
        self._table = (table if wide else table.view(torch.int32))[: self._count]

    def _add(self, some: Sequence[EpisodeColumns]) -> None:
        steps = sum(map(len, some))
        start, self.found = self.found, self.found + steps
        if self.found > self._count:
            return
        row, self._row = self._row, self._row + steps + len(some)
        is_here = self._rows.device.type == "cpu"
        rows = self._rows[row : self._row]
        part = rows if is_here else torch.zeros(rows.shape, dtype=rows.dtype)
        views = {key: view.numpy() for key, view in self._stored.views(part).items()}
        numbers, begin = [], 0
        for episode in some:
            end = begin + len(episode)
            views["observation"][begin : end + 1] = episode.observations
            for key, column in episode.steps.items():
                views[key][begin:end] = column
            numbers.append(torch.arange(row + begin, row + end, dtype=self._table.dtype))
            begin = end + 1
        if not is_here:
            rows.copy_(part)
        self._table[start : self.found] = torch.cat(numbers).to(self._table.device)
