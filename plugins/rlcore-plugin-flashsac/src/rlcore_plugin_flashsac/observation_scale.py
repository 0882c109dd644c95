"""Mean and deviation of observations, learnt while collecting; the networks normalise by them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from pydantic import BaseModel, Field
from rlcore_plugin_transforms.moments import Moments
from torch import Tensor, nn

from rlcore.types import MASK, Context
from rlcore_plugin_flashsac.learnt import LearnsFromBatches

if TYPE_CHECKING:
    from tensordict import TensorDict


class ObservationNorm(nn.Module):
    """The part of a model that normalises observations.

    Args:
        inputs: size of an observation.

    Attributes:
        mean: is subtracted, `[inputs]`, float32; 0 before the first observation.
        deviation: is what the difference is divided by, `[inputs]`, float32; 1 before the first observation.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(inputs))
        self.register_buffer("deviation", torch.ones(inputs))

    def forward(self, observation: Tensor) -> Tensor:
        """Return normalised observations `[..., inputs]`."""
        return (observation - self.mean) / self.deviation


def normalised(observation: Tensor, norms: Iterable[ObservationNorm]) -> Tensor:
    """Return observations as the norms leave them."""
    for norm in norms:
        observation = norm(observation)
    return observation


class ObservationScale(LearnsFromBatches):
    """Learns mean and deviation of the observations, by which the model normalises (SimbaV2, arXiv 2502.15280).

    The transform `running-observation-norm` would leave each replayed observation at the statistics of its time.
    """

    class Config(BaseModel, extra="forbid"):
        """Of the deviation."""

        epsilon: float = Field(1e-8, gt=0, allow_inf_nan=False, description="added to the variance")

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        self._epsilon = config.epsilon
        self._moments = Moments()
        self._norm: ObservationNorm | None = None

    def fill(self, norm: ObservationNorm) -> None:
        """Keep a part of the model at the statistics from now on."""
        self._norm = norm
        self._write()

    def state_dict(self) -> dict[str, Any]:
        """Return the statistics."""
        return self._moments.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the statistics."""
        self._moments.load_state_dict(state)
        self._write()

    def _learn(self, batch: TensorDict) -> None:
        observation = batch["observation"].flatten(0, 1)
        mask = batch.get(MASK, None)
        valid = observation if mask is None else observation[mask.flatten()]
        self._moments.add(valid.cpu().numpy())

    def _write(self) -> None:
        if self._norm is not None and self._moments.count:
            self._norm.mean.copy_(torch.as_tensor(self._moments.mean))
            self._norm.deviation.copy_(torch.as_tensor(self._moments.deviation(self._epsilon)))
