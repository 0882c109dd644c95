"""The latest episodes of a run, each observation stored once, and sequences of steps gathered from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor

from rlcore.buffers import Minibatch
from rlcore.errors import RlcoreError
from rlcore.state import copy_in_pieces
from rlcore.types import FIRST, NEXT_POLICY_STATE, POLICY_STATE, Key
from rlcore_plugin_replay.intake import check_joinable
from rlcore_plugin_replay.layout import RowLayout, entries_of
from rlcore_plugin_replay.n_step import DONE
from rlcore_plugin_replay.packing import Batch
from rlcore_plugin_replay.ring import Ring
from rlcore_plugin_replay.sequence_rows import sequences
from rlcore_plugin_replay.stacks import FOLLOWING, OBSERVATION, Stacks
from rlcore_plugin_replay.streams import Cut, Plan, Streams

_INT: Final = torch.int32

Allocate = Callable[[str, tuple[int, int]], Tensor]


class Episodes:
    """Keeps the steps of all envs in rows, and the places of sequences in them.

    Args:
        num_envs: how many envs there are.
        capacity: rows that are kept, over all envs.
        cut: says how episodes are cut into sequences.
        gamma: the discount of joined rewards.
        allocate: returns zeros `[row, word]` for a name and a shape.
        device: of the rows.
        stacks: stores each frame of stacked observations once; None where rows hold whole observations.

    Attributes:
        sequences: number of sequences that can be sampled.
    """

    def __init__(
        self,
        num_envs: int,
        capacity: int,
        cut: Cut,
        gamma: float,
        allocate: Allocate,
        device: torch.device,
        stacks: Stacks | None = None,
    ) -> None:
        self.sequences = 0
        self._num_envs = num_envs
        self._rows = capacity // num_envs
        self._cut = cut
        self._gamma = gamma
        self._device = device
        self._stacks = stacks
        self._streams = Streams(num_envs, self._rows, cut)
        self._ring = Ring(self._rows * num_envs, partial(allocate, "steps"))
        self._states = Ring(self._streams.states, partial(allocate, "states"))
        # by the place of the first trained step of a sequence: rows before it, rows after it, place of its state
        self._spans = torch.zeros(self._rows * num_envs, 3, dtype=_INT, device=device)
        self._offsets = torch.arange(-cut.burn_in, cut.ahead + 1, device=device).unsqueeze(1)

    def add(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Copy the valid steps of a batch `[env, time]`.

        Returns:
            Places of sequences that were overwritten, and places where new sequences begin, int64 `[number]`.

        Raises:
            RlcoreError: the batch lacks the dimensions, rewards or ends of episodes that sequences need, or is larger
                than the buffer.
            StorageError: there is no room for the rows.
        """
        self._check_size(batch)
        if self._stacks is not None:
            batch = self._stacks.numbered(batch)
        self._begin(batch)
        columns = batch.columns
        first = columns.get(FIRST)
        valid = torch.ones_like(columns[DONE]) if batch.mask is None else batch.mask
        plan = self._streams.take(_flags(valid), _flags(columns[DONE]), None if first is None else _flags(first))
        self._write(plan, columns)
        if self._stacks is not None:
            oldest = torch.tensor(self._streams.oldest(), dtype=torch.int64, device=self._device)
            if len(oldest):
                self._stacks.check_kept(self._ring.columns[OBSERVATION][oldest])
        return self._follow(plan)

    def end(self) -> tuple[Tensor, Tensor]:
        """End the running episodes where they are; return the same as `add`."""
        if self._stacks is not None:
            self._stacks.forget()
        return self._follow(self._streams.end())

    def gather(self, index: Tensor, device: torch.device, further: Mapping[Key, Tensor]) -> Minibatch:
        """Return the sequences at places `[sequence]`.

        Args:
            index: the places.
            device: of the returned entries.
            further: entries to add.

        Returns:
            Entries `[time, sequence, ...]` of `cut.rows` rows, padded by the first and last row of their episode.
        """
        layout = self._ring.layout
        assert layout is not None
        steps_back, steps_ahead, state = self._spans.index_select(0, index).long().unbind(1)
        inside = torch.minimum(torch.maximum(self._offsets, -steps_back), steps_ahead)  # [time, sequence]
        places = (index // self._num_envs + inside) % self._rows * self._num_envs + index % self._num_envs
        gathered = self._ring.rows(places.reshape(-1))
        entries = layout.views(gathered.to(device))
        if self._stacks is not None:
            entries[OBSERVATION] = self._stacks.stacked(layout.view(gathered, OBSERVATION)).to(device)
        rows = {key: entry.view(*inside.shape, *entry.shape[1:]) for key, entry in entries.items()}
        entries_of_episode: dict[Key, Tensor] = dict(further)
        if self._states.layout is not None:
            entries_of_episode[POLICY_STATE] = self._states_at(state).to(device)
        return sequences(
            rows, self._offsets.to(device), steps_ahead.to(device), self._cut, self._gamma, entries_of_episode
        )

    def renew_states(self, index: Tensor, states: Tensor) -> None:
        """Store states of the policy for the sequences that follow others in the same episode.

        Args:
            index: places of the others, `[sequence]`; one may be there twice.
            states: before the row `cut.stride` of each, `[sequence, *state]`. One that is not finite is left out.
        """
        stored = self._states.columns[POLICY_STATE]
        index, states = index.to(self._device), states.to(stored.device, stored.dtype)
        following = (index // self._num_envs + self._cut.stride) % self._rows * self._num_envs + index % self._num_envs
        # so near, a sequence of another episode begins with it, and has no place for a state
        _, steps_ahead, place = self._spans[following].long().unbind(1)
        goes_on = (steps_ahead > 0) & (place >= 0) & states.isfinite().flatten(1).all(1)
        place = place.clamp(min=0)
        # all that write to a place write the same, the last of them, or what is there: so their order does not matter,
        # and a device is not asked which ones go on
        same = (place.unsqueeze(1) == place) & goes_on
        last = (same * torch.arange(1, len(place) + 1, device=place.device)).amax(1) - 1
        written = (last >= 0).reshape(-1, *[1] * (states.ndim - 1))
        stored[place] = torch.where(written, states[last.clamp(min=0)], stored[place])

    def state_dict(self) -> dict[str, Any]:
        """Return the filled rows as views, and the places of sequences in them."""
        self._ring.written, self._states.written = self._streams.filled, self._streams.states
        return {
            "num_envs": self._num_envs,
            "streams": self._streams.state_dict(),
            "ring": self._ring.state_dict(),
            "states": self._states.state_dict(),
            "spans": self._spans[: self._streams.filled],
            **({} if self._stacks is None else {"stacks": self._stacks.state_dict()}),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the rows; nothing may have been added before.

        Raises:
            StorageError: there is no room for the rows.
        """
        self._streams.load_state_dict(state["streams"])
        self._ring.load_state_dict(state["ring"])
        self._states.load_state_dict(state["states"])
        copy_in_pieces(self._spans[: state["spans"].shape[0]], state["spans"])
        self.sequences = int((self._spans[:, 1] > 0).sum())
        if self._stacks is not None:
            self._stacks.load_state_dict(state["stacks"])

    def entries(self) -> dict[Key, tuple[torch.dtype, tuple[int, ...]]]:
        """Return dtype and shape of each entry of a row; empty before the first batch."""
        return {} if self._ring.layout is None else self._ring.layout.entries

    def _check_size(self, batch: Batch) -> None:
        if len(batch.size) != 2 or batch.size[0] != self._num_envs:
            raise RlcoreError(f"a replay buffer of sequences takes batches [env, time], not {list(batch.size)}")
        check_room(self._rows * self._num_envs, self._num_envs, batch.size[1], self._cut, RlcoreError)

    def _begin(self, batch: Batch) -> None:
        """Check the entries of a batch, and allocate rows at the first one."""
        entries = entries_of(batch.columns, 2)
        check_joinable(entries, "a replay buffer of sequences")
        states = {key: entry for key, entry in entries.items() if key == POLICY_STATE}
        for key in (FOLLOWING, POLICY_STATE, NEXT_POLICY_STATE):
            entries.pop(key, None)
        entries[FIRST] = (torch.bool, (1,))
        if self._ring.layout is None:
            self._ring.begin(RowLayout(entries))
            if states:
                self._states.begin(RowLayout(states))
        assert self._ring.layout is not None
        self._ring.layout.check(entries)

    def _write(self, plan: Plan, columns: Mapping[Key, Tensor]) -> None:
        """Copy the steps, last observations and states of a batch."""
        if plan.steps:
            env, time, place, begins = self._tensors(plan.steps, columns[DONE].device)
            keys = [key for key in self._ring.columns if key != FIRST]
            self._ring.put(place, {FIRST: begins.bool().unsqueeze(1), **{key: columns[key][env, time] for key in keys}})
        if plan.finals:
            env, time, place = self._tensors(plan.finals, columns[DONE].device)
            self._ring.put(place, {OBSERVATION: columns[FOLLOWING][env, time]})
        if plan.states and POLICY_STATE in columns:
            env, time, place = self._tensors(plan.states, columns[DONE].device)
            self._states.put(place, {POLICY_STATE: columns[POLICY_STATE][env, time]})

    def _tensors(self, rows: list[Any], device: torch.device) -> tuple[Tensor, ...]:
        """Return columns as tensors: env and time on the device of the batch, the others on that of the rows."""
        env, time, place, *others = torch.tensor(rows).unbind(1)
        return env.to(device), time.to(device), place.to(self._device), *(other.to(self._device) for other in others)

    def _follow(self, plan: Plan) -> tuple[Tensor, Tensor]:
        """Remove overwritten sequences and add complete ones."""
        overwritten = torch.tensor(plan.dropped, dtype=torch.int64, device=self._device)
        dropped = int((self._spans[overwritten, 1] > 0).sum()) if plan.dropped else 0
        self._spans[overwritten] = 0
        complete = torch.tensor(plan.complete, dtype=torch.int64, device=self._device).reshape(-1, 4)
        places = complete[:, 0]
        self._spans[places] = complete[:, 1:].to(_INT)
        self.sequences += len(plan.complete) - dropped
        return overwritten, places

    def _states_at(self, places: Tensor) -> Tensor:
        """Return the states at places `[sequence]`; zeros where there is none, since an episode begins there."""
        layout = self._states.layout
        assert layout is not None
        states = layout.view(self._states.rows(places.clamp(min=0)), POLICY_STATE)
        kept = (places >= 0).reshape(-1, *[1] * (states.ndim - 1))
        return torch.where(kept, states, torch.zeros_like(states))


def check_room(capacity: int, num_envs: int, steps: int, cut: Cut, error: type[RlcoreError]) -> None:
    """Refuse a capacity in which a batch and a sequence of each env do not fit.

    Args:
        capacity: rows over all envs.
        num_envs: how many envs there are.
        steps: of each env in a batch.
        cut: of episodes into sequences.
        error: what to raise.

    Raises:
        RlcoreError: they do not; of that class.
    """
    if capacity // num_envs < cut.room(steps):
        raise error(
            f"[buffer] capacity = {capacity:,} is too small for {num_envs} envs: each needs room for a sequence of "
            f"{cut.rows} rows and for batches of {steps} steps; set capacity = {num_envs * cut.room(steps):,} or more"
        )


def _flags(entry: Tensor) -> list[list[bool]]:
    """Return flags `[env, time, 1]` as lists."""
    flags: list[list[bool]] = entry.squeeze(-1).tolist()
    return flags
