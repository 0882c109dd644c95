"""Returns and lengths of episodes, counted over batches that begin and end in the middle of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from rlcore.types.records import Array, BoolArray

# steps of a batch up to which Python counts faster than NumPy is called
_FEW: Final = 64


class Finished(NamedTuple):
    """An episode that ended at step `time` of a batch, in env `env_index`."""

    time: int
    env_index: int
    return_: float
    length: int


class EpisodeCounter:
    """Follows the episodes of a number of envs.

    Attributes:
        returns: undiscounted returns of the running episodes so far, `[env]`.
        lengths: their steps, `[env]`.
    """

    def __init__(self, num_envs: int) -> None:
        self.returns = np.zeros(num_envs)
        self.lengths = np.zeros(num_envs, dtype=np.int64)

    def take(self, reward: Array, done: BoolArray, mask: BoolArray) -> list[Finished]:
        """Take a batch in, and return the episodes that ended in it, in the order in which they ended.

        Args:
            reward: `[time, env]`.
            done: `[time, env]`, whether the episode ended with the step.
            mask: `[time, env]`, false for steps that do not count.
        """
        if reward.size <= _FEW:
            if 1 not in done.tobytes() and 0 not in mask.tobytes():  # a fifth of the time of `any` and `all`
                self._go_on(reward.tolist())
                return []
            return self._take_few((reward * mask).tolist(), done.tolist(), mask.tolist())
        returns = np.cumsum(reward * mask, axis=0, dtype=np.float64) + self.returns
        lengths = np.cumsum(mask, axis=0) + self.lengths
        times, indices = np.nonzero(done)
        finished = []
        begun_return, begun_length = np.zeros_like(self.returns), np.zeros_like(self.lengths)
        places = zip(
            times.tolist(),
            indices.tolist(),
            returns[times, indices].tolist(),
            lengths[times, indices].tolist(),
            strict=True,
        )
        for time, index, return_, length in places:
            finished.append(
                Finished(time, index, return_ - float(begun_return[index]), length - int(begun_length[index]))
            )
            begun_return[index], begun_length[index] = return_, length
        self.returns = returns[-1] - begun_return
        self.lengths = lengths[-1] - begun_length
        return finished

    def _go_on(self, rewards: list[list[float]]) -> None:
        """Take in a batch in which no episode ends, by the same sums in the same order."""
        for index, of_env in enumerate(zip(*rewards, strict=True)):
            return_sum = 0.0
            for reward in of_env:  # not `sum`, which rounds otherwise from Python 3.12 on
                return_sum += reward
            self.returns[index] += return_sum
        self.lengths += len(rewards)

    def _take_few(self, rewards: list[list[float]], done: list[list[bool]], mask: list[list[bool]]) -> list[Finished]:
        """Do the same, by the same sums in the same order."""
        finished, returns, lengths = [], self.returns.tolist(), self.lengths.tolist()
        for index, return_before in enumerate(returns):
            return_, return_sum, length = return_before, 0.0, lengths[index]
            begun_return, begun_length = 0.0, 0
            for time, (reward, ends, counts) in enumerate(zip(rewards, done, mask, strict=True)):
                return_sum += reward[index]
                return_, length = return_sum + return_before, length + counts[index]
                if ends[index]:
                    finished.append(Finished(time, index, return_ - begun_return, length - begun_length))
                    begun_return, begun_length = return_, length
            returns[index], lengths[index] = return_ - begun_return, length - begun_length
        self.returns, self.lengths = np.array(returns), np.array(lengths)
        return sorted(finished) if len(finished) > 1 else finished

    def reset(self) -> None:
        """Begin new episodes in every env."""
        self.returns[:] = 0
        self.lengths[:] = 0
