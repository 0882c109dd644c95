"""A base of transforms, each of which changes a part of what passes."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from rlcore.errors import ConfigError
from rlcore.types import Transform

if TYPE_CHECKING:
    from typing import Self

    import gymnasium

    from rlcore.types import Array, BoolArray, Key

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
