"""A vector env seen through transforms, for fitting the next one.

Collectors and evaluators apply transforms themselves, into storage of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rlcore.records import EnvSpec, Step
from rlcore.types import Env, Transform

if TYPE_CHECKING:
    from rlcore.records import Array


class TransformedEnv:
    """Applies frozen copies of transforms to the observations of an env, whatever its reset mode."""

    def __init__(self, env: Env, transforms: Sequence[Transform], spec: EnvSpec) -> None:
        self.spec = spec
        self._env = env
        self._transforms = [transform.frozen() for transform in transforms]
        self._ended = np.ones(spec.num_envs, dtype=bool)

    def reset(self, seed: int | None = None) -> Array:
        """Reset the env; the transformed observations `[env, *shape]`."""
        return self._seen(self._env.reset(seed=seed), np.ones(self.spec.num_envs, dtype=bool))

    def step(self, action: Array) -> Step:
        """Step the env; observations and last observations are transformed."""
        step = self._env.step(action)
        final = dict(step.final_observation)
        for transform in self._transforms:
            final = {index: transform.final(last, index) for index, last in final.items()}
        ended = step.terminated | step.truncated
        first = ended if self.spec.reset_mode == "same_step" else self._ended
        self._ended = ended
        return step._replace(observation=self._seen(step.observation, first), final_observation=final)

    def close(self) -> None:
        """Close the env."""
        self._env.close()

    def _seen(self, observation: Array, first: Array) -> Array:
        for transform in self._transforms:
            observation = transform.step(observation, first)
        return observation
