"""What masks of actions demand: an action that is allowed at every step, and that no other is taken."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from rlcore.envs.packed import ACTION_MASK, Packed
from rlcore.errors import EnvError, PluginError

if TYPE_CHECKING:
    from rlcore.types.records import Array, BoolArray, EnvSpec


def masks_actions(spec: EnvSpec) -> bool:
    """Return whether the observations of an env say which actions are allowed."""
    return isinstance(spec.observation_space, Packed) and bool(spec.observation_space.choices)


def without_choice(space: Packed, observation: Array) -> BoolArray:
    """Return which observations `[..., words]` allow no action of some choice, `[...]`."""
    mask = space.array(observation, ACTION_MASK) != 0
    begins = np.cumsum([0, *space.choices[:-1]])
    return np.asarray(~np.logical_or.reduceat(mask, begins, axis=-1).all(-1))


def forbidden(space: Packed, action_space: Any, observation: Array, actions: Array) -> BoolArray:
    """Return which actions `[..., *action]` the masks in observations `[..., words]` forbid, `[...]`.

    Args:
        space: of one observation.
        action_space: Discrete, MultiDiscrete or MultiBinary; the actions are inside of it.
        observation: that were acted on.
        actions: what was done.
    """
    begins = np.cumsum([0, *space.choices[:-1]]) - first_numbers(action_space)
    places = actions.reshape(*observation.shape[:-1], -1).astype(np.int64) + begins
    allowed = np.take_along_axis(space.array(observation, ACTION_MASK), places, -1) != 0
    return np.asarray(~allowed.all(-1))


def first_numbers(action_space: Any) -> Array:
    """Return the first number of each choice of Discrete, MultiDiscrete or MultiBinary actions, `[choice]`."""
    if isinstance(action_space, gymnasium.spaces.MultiBinary):
        return np.zeros(math.prod(action_space.shape), dtype=np.int64)
    return np.ravel(action_space.start)


class MaskCheck:
    """Refuses batches in which an action was taken that its mask forbids, or in which there was none to take.

    Args:
        spec: as the policy sees the env; it masks actions.
    """

    def __init__(self, spec: EnvSpec) -> None:
        assert isinstance(spec.observation_space, Packed)
        self._space: Packed = spec.observation_space
        self._actions: Any = spec.action_space
        self._id = spec.id

    def __call__(self, observation: Array, actions: Array, counted: BoolArray, first_env: int, frame: int) -> None:
        """Look at the steps of a batch.

        Args:
            observation: `[time, env, words]`, that were acted on.
            actions: `[time, env, *action]`.
            counted: `[time, env]`, False for steps that only reset.
            first_env: number of the first of these envs.
            frame: at which the batch begins.

        Raises:
            EnvError: a mask allows no action; names the env and the step.
            PluginError: the policy took an action that the mask forbids.
        """
        stuck = without_choice(self._space, observation) & counted
        if stuck.any():
            time, index = np.argwhere(stuck)[0]
            raise EnvError(
                f"env {self._id!r}: the {ACTION_MASK} of env {first_env + index} at step {time} of the batch that "
                f"began at frame {frame} allows no action; the batch is discarded. Allow one, or end the episode there"
            )
        wrong = forbidden(self._space, self._actions, observation, actions) & counted
        if wrong.any():
            time, index = np.argwhere(wrong)[0]
            raise PluginError(
                f"the policy gave env {first_env + index} of {self._id!r} the action {actions[time, index]} at step "
                f"{time} of the batch that began at frame {frame}, which its {ACTION_MASK} forbids; a model must keep "
                "to the mask"
            )


def random_actions(spec: EnvSpec, seed: int) -> Iterator[Array]:
    """Yield random actions `[env, *shape]` of the action space without end; the generator of the space stays alone."""
    space = copy.deepcopy(spec.action_space)
    space.seed(seed)
    while True:
        yield np.stack([np.asarray(space.sample()) for _ in range(spec.num_envs)])


def keeping_to_masks(spec: EnvSpec) -> Callable[[Array, Array], Array]:
    """Return what makes allowed actions of random ones: called with actions `[env, *action]` and observations.

    A forbidden action becomes the next one that is allowed, from the first on after the last. Without masks the actions
    stay what they are.
    """
    if not masks_actions(spec):
        return lambda actions, observation: actions
    space: Any = spec.observation_space
    starts = first_numbers(spec.action_space)

    def allowed(actions: Array, observation: Array) -> Array:
        result = np.array(actions)
        rows = result.reshape(len(result), -1)
        for row, mask in zip(rows, space.array(np.asarray(observation), ACTION_MASK), strict=True):
            begin = 0
            for choice, size in enumerate(space.choices):
                choices_left = np.flatnonzero(mask[begin : begin + size]) + starts[choice]
                if len(choices_left):
                    row[choice] = choices_left[np.searchsorted(choices_left, row[choice]) % len(choices_left)]
                begin += size
        return result

    return allowed
