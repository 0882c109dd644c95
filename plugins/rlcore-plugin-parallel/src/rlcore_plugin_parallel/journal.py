"""What a process needs that takes the place of a worker: a state that it had once, and the actions since then.

Envs that can be saved are deterministic: with the same actions they come from the same state to where they were. So a
state is kept from time to time, whatever it costs to save one, and not after each batch.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import torch
from torch import Tensor

if TYPE_CHECKING:
    from rlcore.types import Array, Episode

# seconds between two states that are kept, at least; and how much longer than it takes to save one
EVERY: Final = 1.0
SHARE: Final = 100.0


class Gathered(NamedTuple):
    """What a worker says of a batch.

    Attributes:
        version: of the weights that it acted with.
        episodes: that ended, each with the step at which it did.
        running: how many are in their middle.
        kept: its state after the batch, where it was time to keep one.
        memory: what the policy remembers after the batch; None where it has no state.
    """

    version: int
    episodes: list[tuple[int, Episode]]
    running: int
    kept: Any = None
    memory: Any = None


class _Saved(Protocol):
    """A worker, as far as it is saved."""

    def inexact(self) -> str | None:
        """Return why it cannot be saved now, or None."""
        ...

    def state(self) -> dict[str, Any]:
        """Return its state."""
        ...


class Keeping:
    """Decides when the state of a worker is kept: saving states takes one percent of the time."""

    def __init__(self) -> None:
        self._due = time.monotonic() + EVERY

    def state(self, worker: _Saved) -> dict[str, Any] | None:
        """Return the state of a worker where it is time for one, and its envs can be saved now."""
        began = time.monotonic()
        if began < self._due or worker.inexact() is not None:
            return None
        state = worker.state()
        ended = time.monotonic()
        self._due = ended + max(EVERY, SHARE * (ended - began))
        return state


class Journal:
    """The states and actions of all workers, as the process of the learner has them.

    Args:
        shares: the envs of each worker.
        begin: the messages with which each began.
    """

    def __init__(self, shares: Sequence[slice], begin: Sequence[tuple[Any, ...]]) -> None:
        self._shares = shares
        self._bases = list(begin)
        self._actions: list[list[Array]] = [[] for _ in shares]
        self._memories: list[Any] = [None] * len(shares)

    def add(self, actions: Array, gathered: Sequence[Gathered]) -> None:
        """Note a batch that is complete; its actions are `[time, env, *action]`, and copied."""
        actions = actions.copy()
        for index, (share, answer) in enumerate(zip(self._shares, gathered, strict=True)):
            if answer.kept is not None:
                self._bases[index] = ("load", answer.kept)
                self._actions[index].clear()
            else:
                self._actions[index].append(actions[:, share])
            self._memories[index] = answer.memory

    def recovery(self, index: int) -> list[tuple[Any, ...]]:
        """Return the messages that bring a new process to where a worker was after the latest batch."""
        messages = [self._bases[index]]
        if self._actions[index]:
            messages.append(("replay", self._actions[index], self._memories[index]))
        return messages


class Replayed:
    """Acts as somebody acted.

    Args:
        actions: `[time, env, *action]`.
    """

    def __init__(self, actions: Array) -> None:
        self._actions = iter(torch.from_numpy(actions).unbind(0))

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return the actions of the next step, which describe themselves."""
        action = next(self._actions)
        return action, action

    def describe(self, parameters: Tensor, action: Tensor) -> Mapping[Any, Tensor]:
        """Return nothing."""
        return {}
