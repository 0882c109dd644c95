"""Returns and lengths of episodes, counted over batches that begin and end in the middle of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

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

    Args:
        num_envs: how many.
    """

    def __init__(self, num_envs: int) -> None:
        # numbers of Python: of a few envs, arrays would cost more than the counting
        self._returns = [0.0] * num_envs
        self._lengths = [0] * num_envs
        self._all_count = [1] * num_envs

    @property
    def returns(self) -> Array:
        """Undiscounted returns of the running episodes so far, `[env]`."""
        return np.array(self._returns)

    @property
    def lengths(self) -> Array:
        """Their steps, `[env]`."""
        return np.array(self._lengths, dtype=np.int64)

    @property
    def running(self) -> int:
        """How many episodes are in their middle."""
        return sum(length > 0 for length in self._lengths)

    def take(self, reward: Array, done: BoolArray, mask: BoolArray) -> list[Finished]:
        """Take a batch in, and return the episodes that ended in it, in the order in which they ended.

        Args:
            reward: `[time, env]`.
            done: `[time, env]`, whether the episode ended with the step.
            mask: `[time, env]`, false for steps that do not count.
        """
        if reward.size > _FEW:
            return self._take_many(reward, done, mask)
        masked = 0 in mask.tobytes()  # a fifth of the time of `all`
        if not masked and 1 not in done.tobytes():
            self._go_on(reward.tolist())
            return []
        if masked:
            return self._take_few((reward * mask).tolist(), done.tolist(), mask.tolist())
        return self._take_few(reward.tolist(), done.tolist(), [self._all_count] * len(reward))

    def _take_many(self, reward: Array, done: BoolArray, mask: BoolArray) -> list[Finished]:
        returns = np.cumsum(reward * mask, axis=0, dtype=np.float64) + self.returns
        lengths = np.cumsum(mask, axis=0) + self.lengths
        times, indices = np.nonzero(done & mask)  # one that waits for others is at its end all the while
        finished = []
        begun_return, begun_length = [0.0] * len(self._returns), [0] * len(self._lengths)
        places = zip(
            times.tolist(),
            indices.tolist(),
            returns[times, indices].tolist(),
            lengths[times, indices].tolist(),
            strict=True,
        )
        for time, index, return_, length in places:
            finished.append(Finished(time, index, return_ - begun_return[index], length - begun_length[index]))
            begun_return[index], begun_length[index] = return_, length
        self._returns = (returns[-1] - begun_return).tolist()
        self._lengths = (lengths[-1] - begun_length).tolist()
        return finished

    def _go_on(self, rewards: list[list[float]]) -> None:
        """Take in a batch in which no episode ends, by the same sums in the same order."""
        for index, of_env in enumerate(zip(*rewards, strict=True)):
            return_sum = 0.0
            for reward in of_env:  # not `sum`, which rounds otherwise from Python 3.12 on
                return_sum += reward
            self._returns[index] += return_sum
            self._lengths[index] += len(rewards)

    def _take_few(self, rewards: list[list[float]], done: list[list[bool]], counts: list[list[int]]) -> list[Finished]:
        """Do what `_take_many` does, by the same sums in the same order."""
        finished, returns, lengths = [], self._returns, self._lengths
        for index, return_before in enumerate(returns):
            return_, return_sum, length = return_before, 0.0, lengths[index]
            begun_return, begun_length = 0.0, 0
            for time, (reward, ends, count) in enumerate(zip(rewards, done, counts, strict=True)):
                return_sum += reward[index]
                return_, length = return_sum + return_before, length + count[index]
                if ends[index] and count[index]:
                    finished.append(Finished(time, index, return_ - begun_return, length - begun_length))
                    begun_return, begun_length = return_, length
            returns[index], lengths[index] = return_ - begun_return, length - begun_length
        return sorted(finished) if len(finished) > 1 else finished

    def reset(self) -> None:
        """Begin new episodes in every env."""
        self.go_on_from([0.0] * len(self._returns), [0] * len(self._lengths))

    def go_on_from(self, returns: Any, lengths: Any) -> None:
        """Go on in the middle of episodes, with what `returns` and `lengths` were."""
        self._returns = np.asarray(returns, dtype=np.float64).tolist()
        self._lengths = np.asarray(lengths, dtype=np.int64).tolist()
