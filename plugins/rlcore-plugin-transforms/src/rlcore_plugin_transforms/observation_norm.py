"""Observations with mean 0 and standard deviation 1, by statistics that are learnt while training."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pydantic import BaseModel, Field

from rlcore.errors import EnvError
from rlcore.types import Context
from rlcore_plugin_transforms.moments import Moments
from rlcore_plugin_transforms.normalising import Normalising

if TYPE_CHECKING:
    from typing import Self

    from tensordict import TensorDict
    from torch import Tensor

    from rlcore.types import Array, BoolArray


class RunningObservationNorm(Normalising):
    """Returns `(observation - mean) / sqrt(variance + epsilon)` as float32, clipped.

    Every observation that `step` sees in training is taken into the statistics, and then normalised with them as they
    are at that moment: an observation in a batch is the one on which the policy acted. The last observation of an
    episode, where the env hands it over apart (`same_step`), is normalised and not learnt from. Evaluation uses a copy
    that does not learn. Ranks that train together merge their statistics once per iteration.

    Attributes:
        drifts: its name; an observation is normalised otherwise when it comes again, of which a replay buffer warns.
    """

    drifts: Final = "running-observation-norm"

    class Config(BaseModel, extra="forbid"):
        """The form of the result."""

        clip: float = Field(
            10.0, ge=0, allow_inf_nan=False, description="largest absolute value of the result; 0: no limit"
        )
        epsilon: float = Field(1e-8, gt=0, allow_inf_nan=False, description="added to the variance")

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__(self.drifts, config.clip)
        self._epsilon = config.epsilon
        self._env_id = context.env_spec.id
        self._moments = Moments(context.group)
        self._learning = True

    def statistics(self) -> tuple[Array, Array]:
        """Return mean and deviation of what was seen so far."""
        moments = self._moments.arrays()
        return moments.mean, moments.deviation(self._epsilon)

    def statistics_like(self, tensor: Tensor) -> tuple[Tensor, Tensor]:
        """Return the same as tensors."""
        return self._moments.figures(self._epsilon, tensor)

    def step_tensors(self, observation: Tensor, first: Tensor) -> Tensor:
        """Return what `step` does; whoever steps envs of tensors sees whether they are finite."""
        if self._learning:
            self._moments.add_tensors(observation)
        return self.final_tensors(observation)

    def step(self, observation: Array, first: BoolArray) -> Array:
        """Return normalised observations `[env, *shape]`.

        Raises:
            EnvError: an observation to learn from is not finite.
        """
        if self._learning:
            if not np.isfinite(observation).all():
                raise EnvError(
                    f"env {self._env_id!r}: an observation is not finite, which would spoil the statistics of "
                    "running-observation-norm; repair the environment"
                )
            self._moments.add(observation)
        return self.normalised(observation)

    def batch(self, batch: TensorDict) -> TensorDict:
        """Return the batch; ranks that train together agree on the statistics here."""
        if self._learning:
            self._moments.agree(self._shape or ())
        return batch

    def frozen(self) -> Self:
        """Return a copy with the statistics of this moment, which it keeps."""
        copied = super().frozen()
        copied._moments = copy.copy(self._moments.arrays())
        copied._learning = False
        return copied

    def state_dict(self) -> dict[str, Any]:
        """Return the statistics."""
        return self._moments.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the statistics.

        Raises:
            StorageError: they are of observations of another shape.
        """
        self._moments.load_state_dict(state, self._shape)
