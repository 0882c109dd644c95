"""Returns and lengths of episodes, counted in tensors over batches that begin and end in the middle of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rlcore.types import Episode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlcore.types import Array


class EpisodeCounter:
    """Follows the episodes of a number of envs.

    Args:
        num_envs: how many.
        device: of the batches.
        first_env: number of the first of them among all of the run.
    """

    def __init__(self, num_envs: int, device: torch.device, first_env: int) -> None:
        self._first_env = first_env
        self._returns = torch.zeros(num_envs, dtype=torch.float64, device=device)
        self._lengths = torch.zeros(num_envs, dtype=torch.int64, device=device)

    @property
    def running(self) -> int:
        """How many episodes are in their middle."""
        return int((self._lengths > 0).sum())

    def take(self, reward: Tensor, done: Tensor) -> Tensor:
        """Take a batch in, `[time, env]` each; return the returns and lengths of the episodes that ended in it.

        Returns:
            `[2, time, env]`, float64: returns, then lengths, where an episode ended, and zeros elsewhere.
        """
        steps = torch.arange(1, len(reward) + 1, device=reward.device)[:, None]
        returns = _sums(reward.double()) + self._returns
        lengths = steps + self._lengths
        # the row after the latest end up to each step, 0 where there is none
        ends = torch.where(done, steps, 0).cummax(0).values
        begins = torch.cat([torch.zeros_like(ends[:1]), ends[:-1]])
        of_episodes = torch.stack([returns - _at(returns, begins), (lengths - _at(lengths, begins)).double()])
        self._returns = returns[-1] - _at(returns, ends[-1:])[0]
        self._lengths = lengths[-1] - _at(lengths, ends[-1:])[0]
        return torch.where(done, of_episodes, 0)

    def told(self, ended: Array) -> list[Episode]:
        """Return the episodes of what `take` returned, in the order of their ends."""
        time, env = ended[1].nonzero()
        columns = ended[0, time, env], ended[1, time, env].astype(int), env + self._first_env
        finished = zip(*(column.tolist() for column in columns), strict=True)
        return [Episode(return_, length, index, {}) for return_, length, index in finished]

    def reset(self) -> None:
        """Begin new episodes in every env."""
        self._returns = torch.zeros_like(self._returns)
        self._lengths = torch.zeros_like(self._lengths)

    def state_dict(self) -> dict[str, Any]:
        """Return the running episodes."""
        return {"returns": self._returns, "lengths": self._lengths}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on with those that were saved."""
        self._returns = state["returns"].to(self._returns.device)
        self._lengths = state["lengths"].to(self._lengths.device)


def _sums(values: Tensor) -> Tensor:
    """Return the sums of the rows up to each, `[time, env]`."""
    if values.device.type == "cpu":
        return values.cumsum(0)
    # `cumsum` has no deterministic kernel on CUDA, and these sums are those of the CPU to the bit
    sums = torch.empty_like(values)
    sums[0] = values[0]
    for time in range(1, len(values)):
        torch.add(sums[time - 1], values[time], out=sums[time])
    return sums


def _at(values: Tensor, rows: Tensor) -> Tensor:
    """Return the values one row before each of these rows, `[time, env]`; 0 before row 0."""
    return torch.where(rows > 0, values.gather(0, (rows - 1).clamp(min=0)), 0)
