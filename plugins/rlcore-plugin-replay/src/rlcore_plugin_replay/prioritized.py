"""The replay buffer `prioritized`, which samples transitions in proportion to their priorities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field
from torch import Tensor

from rlcore.buffers import Minibatch
from rlcore.errors import RlcoreError
from rlcore.types import Context, Key
from rlcore_plugin_replay.base import INDEX
from rlcore_plugin_replay.buffer import ReplayBuffer
from rlcore_plugin_replay.priorities import Priorities, new_priorities
from rlcore_plugin_replay.td_errors import TD_ERROR, WEIGHT, TDErrors

if TYPE_CHECKING:
    from tensordict import TensorDict


class PriorityConfig(BaseModel):
    """Keys of priorities."""

    alpha: float = Field(0.7, ge=0, description="how much priorities count: 0 samples uniformly")
    beta: float = Field(0.5, ge=0, le=1, description="how much of the bias the weights take back: 1 all of it")
    eps: float = Field(1e-8, gt=0, description="added to each error, so that every transition can be sampled")


class PrioritizedReplayBuffer(ReplayBuffer):
    """Samples a transition with probability `p^alpha / sum p^alpha`, where `p` is its latest `|TD error| + eps`.

    Proportional prioritisation with one sample from each of `minibatch_size` equal parts (Schaul et al., 2016,
    arXiv 1511.05952, section 3.3 and appendix B.2.1). A new transition has the highest priority seen so far.
    `priority_weight` `[sample, 1]` are the importance weights of section 3.4, divided by the largest of the minibatch.
    The loss returns `td_error` `[sample, 1]`, and multiplies each error by its weight. An update without a `td_error`,
    such as one of the actor alone, leaves the priorities as they are.

    Attributes:
        schedulable: `beta`, which schedules may move.
    """

    class Config(PriorityConfig, ReplayBuffer.Config):
        """Keys of `[buffer]`."""

    _name = "prioritized"
    _instead = 'the buffer "replay"'

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__(config, context)
        self._errors = TDErrors(self._name, self._instead, context)
        self._alpha, self._eps = config.alpha, config.eps
        self.schedulable = {"beta": config.beta}
        self.writes = (*self.writes, WEIGHT)
        self._priorities = self._new_priorities()

    def feedback(self, minibatch: Mapping[Key, Tensor], values: Mapping[str, Tensor]) -> None:
        """Set the priorities of a minibatch from `td_error`, unless the update computed some of the losses alone.

        Raises:
            ConfigError: all losses were computed, and there is no `td_error`.
        """
        if not minibatch[INDEX].numel():  # the buffer of this process is empty, that of another is not
            return
        errors = self._errors.of(values)
        if errors is not None:
            self._set(minibatch[INDEX], errors)

    def update_priority(self, index: Tensor | TensorDict, priority: Tensor | None = None) -> None:
        """Set the priorities of transitions.

        Args:
            index: their places, int64 `[sample]`; or samples with the entries `index` and `td_error`.
            priority: TD errors of any sign, `[sample]` or `[sample, 1]`; one that is not finite counts as the highest
                so far.

        Raises:
            RlcoreError: there are no priorities, not as many as places, or places without transitions.
        """
        if not isinstance(index, Tensor):
            index, priority = index.get(INDEX), index.get(TD_ERROR) if priority is None else priority
        index = index.reshape(-1)
        if index.numel() and not 0 <= int(index.min()) <= int(index.max()) < len(self):
            raise RlcoreError(
                f"update_priority got places from {int(index.min())} to {int(index.max())}, and there are transitions "
                f"from 0 to {len(self) - 1}; give the entry {INDEX!r} of samples of this buffer"
            )
        self._set(index, priority)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the buffer, with the priorities of its transitions."""
        state = super().state_dict()
        if "ring" in state:
            state |= self._priorities.state_dict()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state; see `ReplayBuffer.load_state_dict`."""
        super().load_state_dict(state)
        self._priorities = self._new_priorities()
        if "priorities" in state:
            self._priorities.load_state_dict(state)

    def _new_priorities(self) -> Priorities:
        return new_priorities(self._config.capacity, self._alpha, self._eps, self._device)

    def _set(self, index: Tensor, priority: Tensor | None) -> None:
        """Set the priorities of transitions at places `[sample]`.

        Raises:
            RlcoreError: there are not as many priorities as places.
        """
        if priority is None or priority.numel() != index.numel():
            raise RlcoreError(
                f"update_priority needs a priority for each of the {index.numel()} places; it got "
                f"{'none' if priority is None else priority.numel()}"
            )
        if index.numel():
            self._priorities.set(index, priority.detach())

    def _wrote(self, begin: int) -> None:
        count = min(self._ring.written - begin, self._config.capacity)
        self._priorities.begin((self._ring.written - count) % self._config.capacity, count)

    def _draw(self, size: int) -> Minibatch:
        index, weight = self._priorities.draw(size, self._generator, self.schedulable["beta"])
        return self._gathered(index, **{WEIGHT: weight})
