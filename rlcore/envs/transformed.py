"""A vector env seen through transforms: for fitting the next one, for evaluations and for rollouts.

Collectors apply transforms themselves, into storage of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from rlcore.envs.episode_starts import EpisodeStarts
from rlcore.envs.step_checks import StepCheck
from rlcore.types import Env, Transform
from rlcore.types.part import defines, with_defaults
from rlcore.types.records import EnvSpec, Step

if TYPE_CHECKING:
    import gymnasium
    from tensordict import TensorDict

    from rlcore.types.records import Array

Taken = TypeVar("Taken")


class TransformedEnv(Env):
    """Applies frozen copies of transforms to the observations of an env, and to its actions, whatever its reset mode.

    Args:
        env: stays the caller's until `close`.
        transforms: in the order in which observations pass; copied as they are now.

    Attributes:
        spec: what the policy sees.
    """

    def __init__(self, env: Env, transforms: Sequence[Transform]) -> None:
        self.spec = env.spec
        for transform in transforms:
            self.spec = transformed_spec(self.spec, transform)
        self._env = env
        self._transforms = [transform.frozen() for transform in transforms]
        self._step = through_actions(env.step, self._transforms)
        self._readers = reward_readers(self._transforms)
        self._check = StepCheck(env.spec)
        self._starts = EpisodeStarts(env.spec)

    def reset(self, seed: int | None = None) -> Array:
        """Reset the env; the transformed observations `[env, *shape]`.

        Raises:
            EnvError: what the env returned has another form than its spec says; `step` too.
        """
        observation = self._check.observation(self._env.reset(seed=seed))
        return self._transform(observation, self._starts.reset())

    def step(self, action: Array) -> Step:
        """Step the env with the actions of a policy; observations and last observations are transformed."""
        step = self._check(self._step(action))
        for read in self._readers:
            read(step.reward)
        final = dict(step.final_observation)
        for transform in self._transforms:
            final = {index: transform.final(last, index) for index, last in final.items()}
        observation = self._transform(step.observation, self._starts.first(step))
        return step._replace(observation=observation, final_observation=final)

    def batch(self, batch: TensorDict) -> TensorDict:
        """Return a batch `[env, time]` of the steps of this env, as the transforms change collected batches."""
        for transform in self._transforms:
            batch = transform.batch(batch)
        return batch

    def close(self) -> None:
        """Close the env."""
        self._env.close()

    def _transform(self, observation: Array, first: Array) -> Array:
        for transform in self._transforms:
            observation = transform.step(observation, first)
        return observation


def transformed_spec(spec: EnvSpec, transform: Transform) -> EnvSpec:
    """Return the spec of an env as a transform leaves it."""
    action_space = with_defaults(transform, Transform).action_space(spec.action_space)
    return replace(
        spec, observation_space=transform.observation_space(spec.observation_space), action_space=action_space
    )


def through_actions(step: Callable[[Array], Taken], transforms: Sequence[Transform]) -> Callable[[Array], Taken]:
    """Return what calls `step` with the actions of a policy as the transforms change them, if they do."""
    changes: list[Callable[[Array], Array]] = [
        transform.action for transform in reversed(transforms) if defines(transform, Transform.action)
    ]
    if not changes:
        return step

    def changed(action: Array) -> Taken:
        for change in changes:
            action = change(action)
        return step(action)

    return changed


def reward_readers(transforms: Sequence[Transform]) -> list[Callable[[Array], None]]:
    """Return what takes the rewards of each step in, of the transforms that want them."""
    return [transform.read_reward for transform in transforms if defines(transform, Transform.read_reward)]


def observation_dtype(space: gymnasium.Space[Any]) -> Any:
    """Return the dtype in which policies and batches have the observations of a space: that of the space.

    Single precision takes the place of wider floats, and of wide unsigned integers, with which torch cannot count.
    """
    dtype = np.dtype(space.dtype)
    wide = (dtype.kind == "f" and dtype.itemsize > 4) or (dtype.kind == "u" and dtype.itemsize > 1)
    return np.dtype(np.float32) if wide else dtype
