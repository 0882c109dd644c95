"""The buffer of offline training for policies with a state: stretches of the recorded episodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from pydantic import Field
from torch import Tensor

from rlcore.buffers import Minibatch, SequenceMinibatch
from rlcore.errors import ConfigError
from rlcore.types import FIRST, MASK, POLICY_STATE, Context, Key, has_memory
from rlcore_plugin_datasets.base import OfflineBuffer, OfflineConfig
from rlcore_plugin_datasets.transitions import ENTRIES, HowJoined


class DatasetSequences(OfflineBuffer):
    """Samples stretches of recorded episodes, with replacement, in which every step is as likely as any other.

    A minibatch has entries `[time, sequence, ...]` of `burn_in + sequence_length` rows. The policy begins with the
    state of an episode's beginning, as the data know no other; `burn_in` steps come before those that are trained on,
    and only bring it up to date. `first` is True in the first row, and where the episode begins. The mask
    `[time, sequence, 1]` is True where a step is trained on; stretches that reach over the beginning or the end of
    their episode are padded by its first or last step. `policy_state` `[sequence, *state]` is that before the first
    row.

    Attributes:
        takes_memory: True.
        writes: the entries of a minibatch.

    Raises:
        ConfigError: the policy has no state; see also `OfflineBuffer`.
    """

    takes_memory: Final = True

    class Config(OfflineConfig):
        """Which data, and how they are cut."""

        minibatch_size: int = Field(32, ge=1, description="stretches per update")
        sequence_length: int = Field(40, ge=1, description="steps of a stretch that are trained on")
        burn_in: int = Field(20, ge=0, description="steps before those, which only bring the state up to date")

    def __init__(self, config: Config, context: Context) -> None:
        if not has_memory(context.model):
            raise ConfigError(
                f"[buffer] {context.name} hands out stretches of time, for a policy with a state; that of this model "
                'has none: use = "datasets:dataset"'
            )
        super().__init__(config, HowJoined(), config.minibatch_size, context)
        self.writes: tuple[Key, ...] = (*ENTRIES, POLICY_STATE, FIRST, MASK)
        policy: Any = context.model.policy
        self._initial_state: Callable[[int], Tensor] = policy.initial_state
        self._burn_in, self._length = config.burn_in, config.sequence_length
        begins = self._data.begins()
        ends = torch.cat([begins[1:], torch.tensor([len(self._data)], device=begins.device)])
        self._begins, self._ends = begins, ends
        # a stretch may begin so many steps before its episode that one of its steps is left: each step is then in
        # as many stretches as any other
        self._until = torch.cumsum(ends - begins + self._length - 1, 0)
        self._stretches = int(self._until[-1])  # read once, as each reading would wait for the device

    def _draw(self, size: int) -> Minibatch:
        device = self._data.device
        chosen = torch.randint(self._stretches, (size,), generator=self._generator, device=device)
        episode = torch.searchsorted(self._until, chosen, right=True)
        begin, end = self._begins[episode], self._ends[episode]
        trained = end - (self._until[episode] - chosen)  # the first step that is trained on
        steps = torch.arange(-self._burn_in, self._length, device=device).unsqueeze(1)
        places = trained + steps
        row = places.clamp(min=begin).minimum(end - 1)
        first = places == begin
        first[0] = True
        mask = (places == row) & (steps >= 0)
        return self._minibatch(row, first, mask)

    def _minibatch(self, row: Tensor, first: Tensor, mask: Tensor) -> Minibatch:
        """Return the steps of rows `[time, sequence]`."""
        layout, target = self._data.layout, self._target
        read = layout.reader(self._data.take(row.reshape(-1)).to(target))
        own: dict[Key, Tensor] = {
            POLICY_STATE: self._initial_state(row.shape[1]),
            FIRST: first.unsqueeze(-1).to(target),
            MASK: mask.unsqueeze(-1).to(target),
        }

        def gather(key: Key) -> Tensor:
            if key in own:
                return own[key]
            found = read(key)
            return found.view(*row.shape, *found.shape[1:])

        return SequenceMinibatch(row.numel(), self.writes, gather)
