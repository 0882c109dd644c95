"""A base of transforms that change a part of what passes, and which transforms fit which observations."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from rlcore.envs.packed import ACTION_MASK, Packed, is_image
from rlcore.errors import ConfigError
from rlcore.types import Transform
from rlcore.types.part import with_defaults

if TYPE_CHECKING:
    from typing import Self

    import gymnasium

    from rlcore.types import Array, BoolArray, EnvSpec, Key

# the remedy of an error about observations that are not one vector
FLATTENED: Final = {"transform": [{"use": "transforms:flatten"}]}


class PassThrough(Transform):
    """Leaves everything as it is, and keeps nothing; a transform overrides what it changes."""

    writes: tuple[Key, ...] = ()

    def observation_space(self, space: gymnasium.Space[Any]) -> gymnasium.Space[Any]:
        """Return the same space."""
        return space

    def step(self, observation: Array, first: BoolArray) -> Array:
        """Return the observations as they are."""
        return observation

    def final(self, observation: Array, env_index: int) -> Array:
        """Return the observation as it is."""
        return observation

    def frozen(self) -> Self:
        """Return a copy."""
        return copy.copy(self)


def changes_observations(transform: Transform) -> bool:
    """Return whether a transform may make something else of observations."""
    return not isinstance(transform, PassThrough) or type(transform).step is not PassThrough.step


def box_of(space: gymnasium.Space[Any], transform: str) -> gymnasium.spaces.Box:
    """Return the space of the observations that a transform takes, which must be a Box.

    Args:
        space: of one observation.
        transform: name of its component, for the message.

    Raises:
        ConfigError: it is another space.
    """
    from gymnasium.spaces import Box  # here, so that transforms of plugins without Gymnasium do without it

    if not isinstance(space, Box):
        raise ConfigError(
            f"[transform] {transform} needs observations in a Box, not {space}; the transform 'flatten' before it "
            "makes one of them",
            remedy=FLATTENED,
        )
    return space


def check_observes(transform: Transform, spec: EnvSpec, name: str, leaf: str | None = None) -> None:
    """Refuse a transform of one array where the observations are dicts of several and it names no leaf of them.

    Args:
        transform: that is put behind those there are.
        spec: of the env before it.
        name: of its section.
        leaf: that the section names.

    Raises:
        ConfigError: it changes observations, and names no leaf; or it names one, and changes none.
    """
    space = spec.observation_space
    passes = not changes_observations(transform)
    if leaf is not None and passes:
        raise ConfigError(
            f"[[transform]] {name!r} leaf = {leaf!r}: this transform changes no observation; leave the key out"
        )
    takes_leaves = passes or with_defaults(transform, Transform).takes_leaves
    if isinstance(space, Packed) and leaf is None and not takes_leaves:
        leaves = ", ".join(map(repr, space.leaves))
        example = next((name_of_leaf for name_of_leaf in space.leaves if name_of_leaf != ACTION_MASK), "...")
        raise ConfigError(
            f"[[transform]] {name!r} changes an observation that is one array, and names no leaf of those here, which "
            f'are {leaves}; say which: leaf = "{example}"',
            remedy={"transform": {name: None}} if any(map(is_image, space.leaves.values())) else FLATTENED,
        )
