"""N-step returns in host memory: the same transitions as in `n_step.py`, from packed rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from rlcore.errors import RlcoreError
from rlcore.types import Key
from rlcore_plugin_replay.layout import RowLayout
from rlcore_plugin_replay.n_step import DONE, REWARD, STEPS
from rlcore_plugin_replay.packing import array_of, arrays_of, copying

if TYPE_CHECKING:
    from rlcore.types import Array


class JoinedRows:
    """Joins every step with those that follow it in its episode; see `NStep`.

    Args:
        steps: how many, at least 2.
        gamma: the discount.
    """

    def __init__(self, steps: int, gamma: float) -> None:
        self._steps = steps
        self._gamma = gamma
        self._window: _Window | None = None
        self._state: Mapping[str, Any] = {"waiting": None, "mask": None}

    def places(self, layout: RowLayout, lead: tuple[int, ...]) -> Mapping[Key, Array]:
        """Return where the steps of batches `[time, env]` of this size go, by key.

        Raises:
            RlcoreError: steps of another number of envs wait to be joined with them.
        """
        state = self.state_dict()
        waiting = state["waiting"]
        if waiting is not None and waiting[DONE].shape[0] != lead[1]:
            raise RlcoreError(
                f"a replay buffer with n_steps > 1 goes on with the steps of {waiting[DONE].shape[0]} envs, and the "
                f"batch has those of {lead[1]}; call forget_episodes() where others begin"
            )
        self._window = _Window(layout, lead, self._steps, self._gamma)
        if waiting is not None:
            self._window.load(waiting, state["mask"])
        return self._window.fresh

    def take(self, valid: Array | None) -> tuple[Array, Array | None]:
        """Return the rows `[row, word]` that are complete with the steps that were put into the places.

        Args:
            valid: the mask `[time, env]` of these steps; None if all are to be trained on.

        Returns:
            The rows, which the next call overwrites, and their mask `[time, env]`, None if all are to be trained on.
        """
        assert self._window is not None
        return self._window.take(valid)

    def forget(self) -> None:
        """Drop the steps that wait."""
        self._state = {"waiting": None, "mask": None}
        if self._window is not None:
            self._window.held = 0

    def state_dict(self) -> dict[str, Any]:
        """Return the steps that wait."""
        return dict(self._state) if self._window is None else self._window.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take them back."""
        self._state = {"waiting": state["waiting"], "mask": state["mask"]}
        self._window = None


class _Window:
    """The steps that wait and those of a batch behind them, `[waiting + time, env]`, packed.

    Attributes:
        fresh: the places of a batch, by key.
        held: how many steps of each env wait; they lie right before the places of a batch.
    """

    def __init__(self, layout: RowLayout, lead: tuple[int, ...], steps: int, gamma: float) -> None:
        self.held = 0
        self._time, self._envs = lead
        self._most = steps - 1
        whole = (self._most + self._time, self._envs)
        packed, self._entries = arrays_of(layout, whole)
        self._packed = packed.reshape(*whole, layout.words)
        out, self._out_entries = arrays_of(layout, lead)
        self._rows = out  # [time * env, word]
        self._out = out.reshape(*lead, layout.words)
        self.fresh = {key: entry[self._most :] for key, entry in self._entries.items()}
        self._valid: Array | None = None  # [waiting + time, env], once there was a mask
        self._dtypes = {key: dtype for key, (dtype, _) in layout.entries.items() if key != STEPS}
        following = {key for key in self._dtypes if isinstance(key, tuple) and key[0] == "next"}
        self._following = tuple(following - {REWARD})
        self._own = tuple(self._dtypes.keys() - following)
        number = self._entries[REWARD].dtype.type
        self._discounts = [number(gamma**ahead) for ahead in range(steps)]
        self._entries[STEPS][:] = steps  # as many as most transitions have
        self._interior = self._entries[DONE][:-1]
        self._pairs, self._rewards, self._total = self._whole(0, self._time)

    def take(self, valid: Array | None) -> tuple[Array, Array | None]:
        """Join what is complete, and let the rest wait."""
        count = max(0, self.held + self._time - self._most)
        first = self._time - count
        if count:
            if np.count_nonzero(self._interior[first:] if first else self._interior):
                self._join(first, count)
            else:
                self._join_whole(first, count)
        mask = self._mask(valid, first)
        self._packed[: self._most] = self._packed[self._time :]
        self.held = min(self._most, self.held + self._time)
        return self._rows[: count * self._envs], mask

    def load(self, waiting: Mapping[Key, torch.Tensor], mask: torch.Tensor) -> None:
        """Put steps `[env, time, *shape]` before those of the next batch."""
        self.held = waiting[DONE].shape[1]
        waiting_steps = slice(self._most - self.held, self._most)
        for key in self._dtypes:
            self._entries[key][waiting_steps] = array_of(waiting[key]).swapaxes(0, 1)
        if not mask.all():
            self._begin_mask()[waiting_steps] = array_of(mask).T

    def state_dict(self) -> dict[str, Any]:
        """Return copies of the steps that wait."""
        if not self.held:
            return {"waiting": None, "mask": None}
        waiting_steps = slice(self._most - self.held, self._most)
        waiting = {
            key: torch.from_numpy(np.ascontiguousarray(self._entries[key][waiting_steps].swapaxes(0, 1)).copy()).view(
                dtype
            )
            for key, dtype in self._dtypes.items()
        }
        valid = np.ones((self.held, self._envs), bool) if self._valid is None else self._valid[waiting_steps]
        return {"waiting": waiting, "mask": torch.from_numpy(np.ascontiguousarray(valid.T).copy())}

    def _join_whole(self, first: int, count: int) -> None:
        """Join steps where no episode ends, so that every transition has all of its steps."""
        pairs, rewards, total = self._whole(first, count) if first else (self._pairs, self._rewards, self._total)
        for place, source in pairs:
            place[:] = source
        for discount, reward in rewards:
            total += discount * reward

    def _whole(self, first: int, count: int) -> tuple[list[tuple[Any, Any]], list[tuple[Any, Array]], Array]:
        """Return what is copied where, what is added with which discount, and to what."""
        whole, most, entries = slice(0, count), self._most, self._entries
        pairs = [copying(self._out[whole], self._packed[first : self._time])]
        pairs += [copying(self._out_entries[key][whole], entries[key][first + most :]) for key in self._following]
        later = enumerate(self._discounts[1:], first + 1)
        rewards = [(discount, entries[REWARD][begin : begin + count]) for begin, discount in later]
        return pairs, rewards, self._out_entries[REWARD][whole]

    def _join(self, first: int, count: int) -> None:
        done, reward = self._entries[DONE][first:], self._entries[REWARD][first:]
        total = np.zeros_like(reward[:count])
        steps = np.zeros(done[:count].shape, np.int64)
        going = np.ones_like(done[:count])
        for ahead, discount in enumerate(self._discounts):
            total += discount * going * reward[ahead : ahead + count]
            steps += going
            going &= ~done[ahead : ahead + count]
        last = np.arange(first - 1, first - 1 + count)[:, np.newaxis] + steps[..., 0]
        self._out[:count] = self._packed[last, np.arange(self._envs)]
        places = self._out_entries
        for key in self._own:
            places[key][:count] = self._entries[key][first : first + count]
        places[REWARD][:count] = total
        places[STEPS][:count] = steps

    def _mask(self, valid: Array | None, first: int) -> Array | None:
        """Return the mask of the transitions that are complete, and let that of the rest wait."""
        if valid is None and self._valid is None:
            return None
        whole = self._begin_mask()
        whole[self._most :] = True if valid is None else valid
        mask = whole[first : self._time].copy()
        whole[: self._most] = whole[self._time :].copy()
        return mask

    def _begin_mask(self) -> Array:
        if self._valid is None:
            self._valid = np.ones((self._most + self._time, self._envs), bool)
        return self._valid
