"""The updates of the target network, as a hook."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import BaseModel, Field

from rlcore import Context, Every, Trainer, hookimpl


class TargetUpdate:
    """Moves the target towards the Q-network at intervals."""

    class Config(BaseModel, extra="forbid"):
        """When and how far."""

        every: int = Field(500, ge=1, description="frames between two updates")
        tau: float = Field(1.0, gt=0, le=1, description="how far: 1 copies")

    def __init__(self, config: Config, context: Context) -> None:
        self._every = Every(config.every)
        self._tau = config.tau

    @hookimpl
    def setup(self, trainer: Trainer) -> None:
        """Forget what was due before a resume."""
        self._every.catch_up(trainer.progress)

    @hookimpl
    def post_optim(self, learner: Any) -> None:
        """Update when it is due."""
        if self._every.due(learner.progress):
            model = learner.model
            pairs = zip(model.target_q_values.parameters(), model.q_values.parameters(), strict=True)
            with torch.no_grad():
                for target, source in pairs:
                    target.lerp_(source, self._tau)
