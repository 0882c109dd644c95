"""What transforms may have besides their interface; asked by `offers(transform, ...)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import gymnasium

    from rlcore.types.records import Array


class ActionChanger(Protocol):
    """A transform that changes actions on their way to the env."""

    def action(self, action: Array) -> Array:
        """Return what the env gets for the actions `[env, *shape]` of the policy, as a new array."""
        ...


class ActionSpaceChanger(Protocol):
    """A transform behind which the policy sees another action space than that of the env."""

    def action_space(self, space: gymnasium.Space[Any]) -> gymnasium.Space[Any]:
        """Return the space of the actions that the policy takes, from that of the actions that `action` returns."""
        ...


class RewardReader(Protocol):
    """A transform that wants to know what the env rewarded, as one that makes the last reward an observation."""

    def read_reward(self, reward: Array) -> None:
        """Take the rewards `[env]` of a step in, as the env gave them; before `final` and `step` of that step.

        Not to be changed, and another step may overwrite them.
        """
        ...


class LeafTaker(Protocol):
    """A transform that may take observations of several arrays without naming a leaf: rows of `rlcore.envs.Packed`.

    Attributes:
        takes_leaves: whether it does.
    """

    takes_leaves: bool
