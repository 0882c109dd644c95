"""A buffer that has its data from the start, for runs that collect nothing: the plainest one there can be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import gymnasium
import numpy as np
import torch
from pydantic import BaseModel, Field

from rlcore.buffers.minibatch import Minibatch
from rlcore.types import EnvSpec, Key
from rlcore.types.context import Context

if TYPE_CHECKING:
    from torch import Tensor

_ROWS: Final = 64


class ToyData:
    """Rows of the toy env whose best action is known: 0.5.

    Attributes:
        has_data: True; it needs no collector.
        num_epochs: 1.
        warmup_frames: 0.
        writes: the entries of its minibatches.
    """

    has_data: Final = True
    takes_memory: Final = False
    writes: Final[tuple[Key, ...]] = ("observation", "action", "advantage", "value_target")

    class Config(BaseModel, extra="forbid"):
        """Size and use."""

        minibatch_size: int = Field(8, ge=1, le=_ROWS, description="rows per update")
        updates: int = Field(4, ge=1, description="updates of an iteration")

    def __init__(self, config: Config, context: Context) -> None:
        self.num_epochs: Final = 1
        self.warmup_frames: Final = 0
        self._config = config
        self._generator = torch.Generator().manual_seed(context.seed("draw"))
        data = torch.Generator().manual_seed(0)  # the same rows for every seed of a run, as those of a file are
        action = torch.rand((_ROWS, 1), generator=data) * 2 - 0.5
        self._entries: dict[Key, Tensor] = {
            "observation": torch.rand((_ROWS, 3), generator=data),
            "action": action,
            "advantage": 0.5 - (action - 0.5).square(),
            "value_target": 1 - (action - 0.5).square(),
        }
        self._entries = {key: entry.to(context.device) for key, entry in self._entries.items()}

    @classmethod
    def spec_of(cls, config: Config, context: Context) -> EnvSpec:
        """Return the spec of the toy env."""
        observation = gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float32)
        action = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float32)
        return EnvSpec(id="toy", observation_space=observation, action_space=action, num_envs=1)

    def add(self, batch: Any) -> None:
        """Take nothing in."""

    def minibatches(self, batch: Any) -> Iterator[Minibatch]:
        """Yield random rows."""
        for _ in range(self._config.updates):
            rows = torch.randperm(_ROWS, generator=self._generator)[: self._config.minibatch_size]
            yield Minibatch.of({key: entry[rows.to(entry.device)] for key, entry in self._entries.items()})

    def most_updates(self, batch_steps: int) -> int:
        """Return the updates of an iteration."""
        return self._config.updates

    def feedback(self, minibatch: Mapping[Key, Tensor], values: Mapping[str, Tensor]) -> None:
        """Need none."""

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the samples; the rows are known."""
        return {"generator": self._generator.get_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on sampling from there."""
        self._generator.set_state(state["generator"])
