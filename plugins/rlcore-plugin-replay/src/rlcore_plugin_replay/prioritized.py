"""The replay buffer that samples transitions in proportion to their priorities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import torch
from pydantic import Field
from torch import Tensor

from rlcore.buffers import Minibatch
from rlcore.errors import ConfigError, RlcoreError
from rlcore.types import Context, Key
from rlcore_plugin_replay.buffer import INDEX, ReplayBuffer
from rlcore_plugin_replay.sum_tree import SumTree

if TYPE_CHECKING:
    from tensordict import TensorDict

TD_ERROR: Final = "td_error"
WEIGHT: Final = "priority_weight"


class PrioritizedReplayBuffer(ReplayBuffer):
    """Samples a transition with probability `p^alpha / sum p^alpha`, where `p` is its latest `|TD error| + eps`.

    Proportional prioritisation with one sample from each of `minibatch_size` equal parts (Schaul et al., 2016,
    arXiv 1511.05952, section 3.3 and appendix B.2.1). A new transition has the highest priority seen so far.
    `priority_weight` `[sample, 1]` are the importance weights of section 3.4, divided by the largest of the minibatch.
    The loss returns `td_error` `[sample, 1]`, and multiplies each error by its weight.

    Attributes:
        schedulable: `beta`, which schedules may move.
    """

    class Config(ReplayBuffer.Config):
        """Size, use and the two exponents."""

        alpha: float = Field(0.7, ge=0, description="how much priorities count: 0 samples uniformly")
        beta: float = Field(0.5, ge=0, le=1, description="how much of the bias the weights take back: 1 all of it")
        eps: float = Field(1e-8, gt=0, description="added to each error, so that every transition can be sampled")

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__(config, context)
        self._alpha, self._eps = config.alpha, config.eps
        self.schedulable = {"beta": config.beta}
        self._priorities = SumTree(config.capacity, self._device)
        self.writes = (*self.writes, WEIGHT)
        self._highest = torch.ones((), dtype=torch.float64, device=self._device)

    def extend(self, batch: TensorDict) -> Tensor:
        """Copy the valid steps of a batch, and return the places that they took; see `ReplayBuffer.extend`."""
        index = super().extend(batch)
        if len(index):
            self._priorities[index] = self._highest.expand(len(index))
        return index

    def feedback(self, minibatch: Mapping[Key, Tensor], values: Mapping[str, Tensor]) -> None:
        """Set the priorities of a minibatch from `td_error`.

        Raises:
            ConfigError: the loss returns none.
        """
        if not minibatch[INDEX].numel():  # other processes had rows, and this one none
            return
        if TD_ERROR not in values:
            raise ConfigError(
                f"[buffer] prioritized needs a loss that returns {TD_ERROR!r} [sample, 1]; this one returns "
                f'{", ".join(values)}. Use the buffer "replay" with it.'
            )
        self.update_priority(minibatch[INDEX], values[TD_ERROR])

    def update_priority(self, index: Tensor | TensorDict, priority: Tensor | None = None) -> None:
        """Set the priorities of transitions.

        Args:
            index: their places, int64 `[sample]`; or samples with the entries `index` and `td_error`.
            priority: TD errors of any sign, `[sample]` or `[sample, 1]`; one that is not finite counts as the highest
                so far.

        Raises:
            RlcoreError: places without priorities, or more of one than of the other.
        """
        if not isinstance(index, Tensor):
            index, priority = index.get(INDEX), index.get(TD_ERROR) if priority is None else priority
        if priority is None or priority.numel() != index.numel():
            raise RlcoreError(
                f"update_priority needs a priority for each of the {index.numel()} places; it got "
                f"{'none' if priority is None else priority.numel()}"
            )
        errors = priority.detach().to(self._device, torch.float64).reshape(-1)
        raised = (errors.abs() + self._eps) ** self._alpha
        raised = torch.where(raised.isfinite(), raised, self._highest)
        self._priorities[index.to(self._device).reshape(-1)] = raised
        self._highest = torch.maximum(self._highest, raised.max())

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the buffer, with the priorities of its transitions."""
        state = super().state_dict()
        if "ring" in state:
            state |= {"priorities": self._priorities.state_dict(), "highest": self._highest}
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take it back; see `ReplayBuffer.load_state_dict`."""
        super().load_state_dict(state)
        if "priorities" in state:
            self._priorities.load_state_dict(state["priorities"])
            self._highest = state["highest"].to(self._device).clone()
        else:
            self._priorities = SumTree(self._config.capacity, self._device)
            self._highest = torch.ones_like(self._highest)

    def _draw(self, size: int) -> Minibatch:
        uniform = torch.rand(size, generator=self._generator, device=self._device, dtype=torch.float64)
        parts = torch.arange(size, device=self._device)
        index = self._priorities.draw((parts + uniform) / size)
        priority = self._priorities[index]
        weight = (priority / priority.min()) ** -self.schedulable["beta"]
        return self._gathered(index, **{WEIGHT: weight.to(torch.float32).unsqueeze(-1)})
