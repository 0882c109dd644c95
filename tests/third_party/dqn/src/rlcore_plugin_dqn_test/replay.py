"""A replay buffer: the latest transitions in a ring, drawn uniformly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import torch
from pydantic import BaseModel, Field
from torch import Tensor

from rlcore import Context, Minibatch

KEYS: Final = ("observation", "action", ("next", "observation"), ("next", "reward"), ("next", "terminated"))


class Replay:
    """Keeps transitions over iterations; trains once enough are there."""

    class Config(BaseModel, extra="forbid"):
        """Size and use."""

        capacity: int = Field(10_000, ge=1, description="transitions that are kept")
        warmup_frames: int = Field(10_000, ge=0, description="frames before the first update")
        minibatch_size: int = Field(128, ge=1, description="transitions per update")
        updates: int = Field(1, ge=1, description="updates per iteration")

    def __init__(self, config: Config, context: Context) -> None:
        self.num_epochs = 1
        self.warmup_frames = config.warmup_frames
        self._config = config
        self._generator = context.generator("draw")
        self._rings: dict[Any, Tensor] = {}
        self._added = 0

    def add(self, batch: Any) -> None:
        """Copy the valid steps of a batch into the ring."""
        mask = batch.get(("collector", "mask"), None)
        rows = {key: batch.get(key).flatten(0, 1) for key in KEYS}
        if mask is not None:
            rows = {key: row[mask.flatten()] for key, row in rows.items()}
        count = rows["observation"].shape[0]
        if not self._rings:
            capacity = self._config.capacity
            self._rings = {key: row.new_empty(capacity, *row.shape[1:]) for key, row in rows.items()}
        places = torch.arange(self._added, self._added + count) % self._config.capacity
        for key, row in rows.items():
            self._rings[key][places] = row
        self._added += count

    def minibatches(self, batch: Any) -> Iterator[Minibatch]:
        """Yield minibatches of transitions drawn with replacement."""
        size, filled = self._config.minibatch_size, min(self._added, self._config.capacity)
        for _ in range(self._config.updates):
            places = torch.randint(filled, (size,), generator=self._generator, device=self._generator.device)
            yield Minibatch.of({key: ring[places] for key, ring in self._rings.items()})

    def feedback(self, minibatch: Mapping[Any, Tensor], values: Mapping[str, Tensor]) -> None:
        """Do nothing: every transition is drawn alike."""

    def state_dict(self) -> dict[str, Any]:
        """Return the transitions, where the next one goes, and the position of the draws."""
        filled = min(self._added, self._config.capacity)
        rings = {key: ring[:filled] for key, ring in self._rings.items()}
        return {"rings": rings, "added": self._added, "generator": self._generator.get_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take the transitions back."""
        capacity = self._config.capacity
        self._added = state["added"]
        self._generator.set_state(state["generator"])
        self._rings = {}
        for key, filled in state["rings"].items():
            self._rings[key] = filled.new_empty(capacity, *filled.shape[1:])
            self._rings[key][: filled.shape[0]] = filled
