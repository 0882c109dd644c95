"""Returns and lengths of episodes, counted in tensors over batches that begin and end in the middle of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from rlcore.types import Episode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Ended(NamedTuple):
    """The episodes that ended in a batch.

    Attributes:
        returns: of the episode that each step ended, `[time, env]`, float64; elsewhere of no meaning.
        lengths: its steps; 0 where none ended.
    """

    returns: Tensor
    lengths: Tensor

    def to(self, device: torch.device) -> Ended:
        """Return the same on a device."""
        return Ended(*(tensor.to(device) for tensor in self))


class Unread:
    """What the host has yet to read of the device.

    Args:
        ended: as below.

    Attributes:
        finite: whether the numbers of a batch are finite, 0-d, by the frame at which it began.
        ended: of each batch.
    """

    def __init__(self, ended: Iterable[Ended] = ()) -> None:
        self.finite: dict[int, Tensor] = {}
        self.ended = list(ended)

    def tensors(self) -> dict[Any, Tensor]:
        """Return everything, to be copied at once."""
        ended = {
            (batch, name): value for batch, each in enumerate(self.ended) for name, value in each._asdict().items()
        }
        return {**self.finite, **ended}

    def replace(self, tensors: Mapping[Any, Tensor]) -> None:
        """Hold these, which are copies of all."""
        self.finite = {frame: tensors[frame] for frame in self.finite}
        self.ended = [Ended(tensors[batch, "returns"], tensors[batch, "lengths"]) for batch in range(len(self.ended))]

    def first_not_finite(self) -> int | None:
        """Return the frame of the first batch that is not finite, and forget those that are."""
        finite, self.finite = self.finite, {}
        flags = torch.stack([*finite.values()]).tolist() if finite else []
        return next((frame for frame, flag in zip(finite, flags, strict=True) if not flag), None)

    def take_ended(self) -> list[Ended]:
        """Return what ended, on the CPU, and forget it."""
        ended, self.ended = self.ended, []
        return [each.to(torch.device("cpu")) for each in ended]


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

    def take(self, reward: Tensor, done: Tensor) -> Ended:
        """Take a batch in, `[time, env]` each, and return what ended in it."""
        steps = torch.arange(1, len(reward) + 1, device=reward.device)[:, None]
        returns = reward.cumsum(0, dtype=torch.float64) + self._returns
        lengths = steps + self._lengths
        # the row after the latest end up to each step, 0 where there is none
        ends = torch.where(done, steps, 0).cummax(0).values
        begins = torch.cat([torch.zeros_like(ends[:1]), ends[:-1]])
        return_before = _at(returns, begins)
        length_before = _at(lengths, begins)
        self._returns = returns[-1] - _at(returns, ends[-1:])[0]
        self._lengths = lengths[-1] - _at(lengths, ends[-1:])[0]
        return Ended(returns - return_before, torch.where(done, lengths - length_before, 0))

    def records(self, ended: Iterable[Ended]) -> list[Episode]:
        """Return the episodes of batches that are on the CPU, in the order of their ends."""
        episodes: list[Episode] = []
        for returns, lengths in ended:
            time, env = lengths.nonzero().unbind(1)
            figures = returns[time, env].tolist(), lengths[time, env].long().tolist(), (env + self._first_env).tolist()
            episodes += [Episode(return_, length, index, {}) for return_, length, index in zip(*figures, strict=True)]
        return episodes

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


def _at(values: Tensor, rows: Tensor) -> Tensor:
    """Return the values one row before each of these rows, `[time, env]`; 0 before row 0."""
    return torch.where(rows > 0, values.gather(0, (rows - 1).clamp(min=0)), 0)
