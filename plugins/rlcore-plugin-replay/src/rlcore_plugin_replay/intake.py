"""Writing the columns of a batch into rows of the ring, in host memory or by tensors on a device."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import torch
from torch import Tensor

from rlcore.buffers import rows
from rlcore.errors import RlcoreError
from rlcore.types import Key
from rlcore_plugin_replay.joined import JoinedRows
from rlcore_plugin_replay.layout import Entry, RowLayout, described, entries_of
from rlcore_plugin_replay.n_step import DONE, REWARD, STEPS, NStep
from rlcore_plugin_replay.packing import Batch, Packing, arrays_of, leading
from rlcore_plugin_replay.ring import Ring

if TYPE_CHECKING:
    from rlcore.types import Array

_PIECE: Final = 8 * 2**20  # bytes that are packed at once, so that few are in memory twice; larger batches are cut
_SUMMABLE: Final = (torch.float16, torch.float32, torch.float64)
_STEPS_ENTRY: Final = (torch.int64, (1,))


class Intake(Protocol):
    """Writes batches into a ring; with `n_steps`, keeps the steps that wait for later ones."""

    def write(self, batch: Batch) -> None:
        """Write the valid steps of a batch."""
        ...

    def forget(self) -> None:
        """Drop the steps that wait."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Return the steps that wait: `waiting`, by key `[env, time, *shape]`, and `mask`, `[env, time]`."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the steps that wait."""
        ...


def prepare(ring: Ring, batch: Batch, joins: bool) -> RowLayout:
    """Return the layout of the ring; allocate its rows at the first batch.

    Raises:
        RlcoreError: the batch differs in keys, dtypes or shapes from the first one, or its steps cannot be joined.
        StorageError: there is no room for the ring.
    """
    dims = len(batch.size)
    entries = entries_of(batch.columns, dims)
    if joins:
        if dims != 2:
            raise RlcoreError(f"a replay buffer with n_steps > 1 takes batches [env, time], not {list(batch.size)}")
        check_joinable(entries)
        entries[STEPS] = _STEPS_ENTRY
    if ring.layout is None:
        ring.begin(RowLayout(entries))
    assert ring.layout is not None
    ring.layout.check(entries)
    return ring.layout


def check_joinable(entries: Mapping[Key, Entry], buffer: str = "a replay buffer with n_steps > 1") -> None:
    """Refuse a batch without rewards that can be summed, or without ends of episodes.

    Raises:
        RlcoreError: the message says which.
    """
    reward, done = entries.get(REWARD), entries.get(DONE)
    if reward is None or reward[0] not in _SUMMABLE or done != (torch.bool, (1,)):
        raise RlcoreError(
            f"{buffer} joins {REWARD}, numbers of float16, float32 or float64, up to the next "
            f"{DONE}, bool [env, time, 1]; the batch has {described(reward)} and {described(done)}"
        )


class TensorIntake:
    """Writes column by column, on the device of the ring."""

    def __init__(self, ring: Ring, steps: int, gamma: float) -> None:
        self._ring = ring
        self._n_step = NStep(steps, gamma) if steps > 1 else None

    def write(self, batch: Batch) -> None:
        """Write the valid steps of a batch."""
        prepare(self._ring, batch, self._n_step is not None)
        columns, mask, dims = batch.columns, batch.mask, len(batch.size)
        if self._n_step is not None:
            columns, mask = self._n_step(columns, None if mask is None else mask.reshape(batch.size))
        flat = {key: _flat(column, dims) for key, column in columns.items()}
        if mask is not None:
            chosen = _flat(mask, dims).reshape(-1)
            flat = {key: column[chosen] for key, column in flat.items()}
        self._ring.extend(flat)

    def forget(self) -> None:
        """Drop the steps that wait."""
        if self._n_step is not None:
            self._n_step.forget()

    def state_dict(self) -> dict[str, Any]:
        """Return the steps that wait."""
        return {} if self._n_step is None else self._n_step.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the steps that wait."""
        if self._n_step is not None:
            self._n_step.load_state_dict(state)


class HostIntake:
    """Packs a batch into rows of host memory, and writes these at once.

    A collector uses the same tensors for every batch, so the places of their columns are computed once. A later batch
    costs a copy for each column.
    """

    def __init__(self, ring: Ring, steps: int, gamma: float) -> None:
        self._ring = ring
        self._joined = JoinedRows(steps, gamma) if steps > 1 else None
        self._packing: Packing | None = None
        self._lead: tuple[int, ...] = ()
        self._packed: Array | None = None  # [row, word]
        self._places: Mapping[Key, Array] = {}

    def write(self, batch: Batch) -> None:
        """Write the valid steps of a batch."""
        packing = self._packing
        if packing is None or not packing.fits(batch):
            layout = prepare(self._ring, batch, self._joined is not None)
            if len(pieces := _pieces(batch, layout)) > 1:
                for piece in pieces:
                    self.write(piece)
                self._packing = None  # its tensors keep the whole batch in memory
                return
            packing = self._packing = Packing(batch, self._find_places(batch, layout))
        packing.pack()
        packed, valid = self._packed, packing.valid
        if self._joined is not None:
            packed, valid = self._joined.take(valid)
        assert packed is not None
        if valid is not None and np.count_nonzero(valid) < valid.size:
            packed = packed[valid.reshape(-1)]
        self._ring.write(packed)

    def forget(self) -> None:
        """Drop the steps that wait."""
        if self._joined is not None:
            self._joined.forget()

    def state_dict(self) -> dict[str, Any]:
        """Return the steps that wait."""
        return {} if self._joined is None else self._joined.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the steps that wait."""
        if self._joined is not None:
            self._joined.load_state_dict(state)
        self._packing, self._lead = None, ()

    def _find_places(self, batch: Batch, layout: RowLayout) -> Mapping[Key, Array]:
        """Return where the columns of a batch are packed."""
        lead = leading(batch.size)
        if lead != self._lead:
            if self._joined is not None:
                self._places = self._joined.places(layout, lead)
            else:
                self._packed, self._places = arrays_of(layout, lead)
            self._lead = lead
        return self._places


def _pieces(batch: Batch, layout: RowLayout) -> list[Batch]:
    """Return a batch in pieces that are packed at once."""
    lead = leading(batch.size)
    length = max(1, _PIECE * lead[0] // max(1, layout.words * 8 * math.prod(lead)))
    return [batch] if length >= lead[0] else batch.pieces(length)


def _flat(entry: Tensor, dims: int) -> Tensor:
    """Return `[*batch, ...]` as `[row, ...]`; in the order of time where there is one."""
    return rows(entry) if dims == 2 else entry.flatten(0, dims - 1) if dims else entry.unsqueeze(0)
