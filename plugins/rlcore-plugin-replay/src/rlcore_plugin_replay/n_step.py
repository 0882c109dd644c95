"""N-step returns: joining several steps into one transition, also across batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch
from torch import Tensor

from rlcore.types import Key

DONE: Final[Key] = ("next", "done")
REWARD: Final[Key] = ("next", "reward")
STEPS: Final[Key] = "steps_to_next_obs"

Columns = dict[Key, Tensor]


class NStep:
    """Joins every step with those that follow it in its episode (Hessel et al., 2018, arXiv 1710.02298, section 3).

    The reward becomes `sum_k gamma^k r_k` over up to `steps` steps, and the other entries under `next` become those
    of the last step. `steps_to_next_obs` is the number of steps, which is smaller at the end of an episode. The last
    `steps - 1` steps of a batch wait for the next batch.

    Args:
        steps: number of joined steps, at least 1.
        gamma: the discount.
    """

    def __init__(self, steps: int, gamma: float) -> None:
        self._steps = steps
        self._gamma = gamma
        self._waiting: Columns | None = None
        self._waiting_mask: Tensor | None = None

    def __call__(self, columns: Columns, mask: Tensor | None) -> tuple[Columns, Tensor | None]:
        """Return the transitions that a batch completes.

        Args:
            columns: key to `[env, time, *shape]`.
            mask: `[env, time]`, False for steps that are not trained on; None if all are.

        Returns:
            Columns and mask of these transitions.
        """
        waiting, waiting_mask = self._waiting, self._waiting_mask
        if mask is None and waiting_mask is not None:
            mask = _all_of(columns)
        if waiting is not None:
            if mask is not None:
                before = _all_of(waiting) if waiting_mask is None else waiting_mask
                mask = torch.cat([before.to(mask.device), mask], 1)
            columns = {key: torch.cat([waiting[key].to(value.device), value], 1) for key, value in columns.items()}
        count = max(0, columns[DONE].shape[1] - self._steps + 1)
        # copies: the collector writes its next batch into the same memory
        self._waiting = {key: column[:, count:].clone() for key, column in columns.items()}
        self._waiting_mask = None if mask is None else mask[:, count:].clone()
        return self._joined(columns, count), None if mask is None else mask[:, :count]

    def forget(self) -> None:
        """Drop the steps that wait."""
        self._waiting = self._waiting_mask = None

    def state_dict(self) -> dict[str, Any]:
        """Return the steps that wait."""
        waiting, mask = self._waiting, self._waiting_mask
        return {"waiting": waiting, "mask": _all_of(waiting) if waiting is not None and mask is None else mask}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the steps that wait."""
        waiting, mask = state["waiting"], state["mask"]
        self._waiting = None if waiting is None else {key: value.clone() for key, value in waiting.items()}
        self._waiting_mask = None if mask is None or mask.all() else mask.clone()

    def _joined(self, columns: Columns, count: int) -> Columns:
        done, reward = columns[DONE], columns[REWARD]
        total = torch.zeros_like(reward[:, :count])
        steps = torch.zeros_like(done[:, :count], dtype=torch.int64)
        going = torch.ones_like(done[:, :count])
        for ahead in range(self._steps):
            total += self._gamma**ahead * going * reward[:, ahead : ahead + count]
            steps += going
            going = going & ~done[:, ahead : ahead + count]
        joined = {key: column[:, :count] for key, column in columns.items()}
        env = torch.arange(done.shape[0], device=done.device).unsqueeze(1)
        last = torch.arange(count, device=done.device) + steps.squeeze(-1) - 1
        for key, column in columns.items():
            if isinstance(key, tuple) and key[0] == "next":
                joined[key] = column[env, last]
        return {**joined, REWARD: total, STEPS: steps}


def _all_of(columns: Columns) -> Tensor:
    """Return the mask `[env, time]` of steps of which all are trained on."""
    return torch.ones_like(columns[DONE].squeeze(-1))
