"""The normalisation of observations: what every transform shares that gives them mean 0 and standard deviation 1."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from rlcore.envs import PassThrough, box_of

if TYPE_CHECKING:
    from torch import Tensor

    from rlcore.types import Array, BoolArray, Env
    from rlcore_plugin_transforms.modules import Normalised

log = logging.getLogger(__name__)


class Normalising(PassThrough):
    """Returns `(observation - mean) / deviation`, clipped; computed in double precision, returned in single precision.

    Args:
        name: of the component, for messages.
        clip: the largest absolute value; 0 for no limit.
    """

    def __init__(self, name: str, clip: float = 0.0) -> None:
        self._name = name
        self._clip = clip
        self._shape: tuple[int, ...] | None = None
        # as tensors, where they are asked for and do not change
        self._there: tuple[Tensor, Tensor] | None = None

    def statistics(self) -> tuple[Array, Array]:
        """Return mean and deviation, float64 `[*shape]`."""
        raise NotImplementedError

    def observation_space(self, space: gymnasium.Space[Any]) -> gymnasium.spaces.Box:
        """Return a box of the same shape with the clip as its bounds."""
        self._shape = box_of(space, self._name).shape
        bound = self._clip or np.inf
        return gymnasium.spaces.Box(-bound, bound, self._shape, np.float32)

    def fit(self, env: Env) -> None:
        """Look at the precision of the first observations of an env, where one was made."""
        with suppress(Exception):  # where the spec alone is there; what an env raises, it raises in training too
            self.check_precision(env.spec.id, env.reset())

    def check_precision(self, env_id: str, observation: Array) -> None:
        """Say where single precision has rounded whole numbers before they come here."""
        largest = np.abs(observation).max(initial=0)
        if observation.dtype == np.float32 and np.spacing(largest) >= 1:
            log.warning(
                "env %r: %s gets numbers of %.3g in single precision, in which they are multiples of %g; what differs "
                "by less is lost. Observe them as int64, or as one array of float64 and in no dict, or subtract a "
                "constant in the env",
                env_id,
                self._name,
                largest,
                np.spacing(largest),
            )

    def step(self, observation: Array, first: BoolArray) -> Array:
        """Return normalised observations `[env, *shape]`."""
        return self.normalised(observation)

    def final(self, observation: Array, env_index: int) -> Array:
        """Return the normalised last observation of an episode."""
        return self.normalised(observation)

    def step_tensors(self, observation: Tensor, first: Tensor) -> Tensor:
        """Return what `step` does, of tensors on any device."""
        return self.final_tensors(observation)

    def final_tensors(self, observation: Tensor) -> Tensor:
        """Return what `final` does, of tensors `[env, *shape]`."""
        mean, deviation = self.statistics_like(observation)
        result = (observation.double() - mean) / deviation
        return (result.clamp(-self._clip, self._clip) if self._clip else result).float()

    def statistics_like(self, tensor: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and deviation in double precision, on the device of a tensor."""
        if self._there is None:
            (mean, deviation), double = self.statistics(), tensor.double()
            self._there = double.new_tensor(mean), double.new_tensor(deviation)
        return self._there

    def normalised(self, observation: Array) -> Array:
        """Return observations `[..., *shape]` with mean 0 and standard deviation 1, float32."""
        mean, deviation = self.statistics()
        result = (observation - mean) / deviation
        if self._clip:
            result = np.clip(result, -self._clip, self._clip)
        return np.asarray(result, dtype=np.float32)

    def observation_module(self) -> Normalised:
        """Return the normalisation of this moment as a module."""
        from rlcore_plugin_transforms.modules import Normalised  # torch, which a worker that steps envs does without

        return Normalised(*self.statistics(), self._clip)
