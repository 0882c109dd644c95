"""What transforms that change rewards alone have in common: observations pass as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import gymnasium

    from rlcore.types import Array, BoolArray, Env


class RewardOnly:
    """Leaves observations alone; `batch` and `frozen` are those of the transform."""

    def observation_space(self, space: gymnasium.Space[Any]) -> gymnasium.Space[Any]:
        """Return the same space."""
        return space

    def fit(self, env: Env) -> None:
        """Do nothing: there is nothing to learn before training."""

    def step(self, observation: Array, first: BoolArray) -> Array:
        """Return the observations as they are."""
        return observation

    def final(self, observation: Array, env_index: int) -> Array:
        """Return the observation as it is."""
        return observation
