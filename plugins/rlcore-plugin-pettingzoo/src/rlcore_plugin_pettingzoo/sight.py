"""What an agent sees as one array: dicts packed, with the mask of its actions among the leaves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Dict, Discrete, MultiBinary, MultiDiscrete, Space

from rlcore.envs import ACTION_MASK, Packed, packed_space
from rlcore.errors import ConfigError


class Sight:
    """The observations of one agent, as arrays of one space.

    Args:
        space: of the agent's observations.
        actions: of the agent.
        mask_key: of the infos that say which actions are allowed; the mask becomes the leaf `action_mask`, beside the
            leaves of an observation that is a dict, or beside `observation`.

    Attributes:
        space: of the arrays.

    Raises:
        ConfigError: a leaf is no array, or there cannot be a mask of the actions.
    """

    def __init__(self, space: Space[Any], actions: Space[Any], mask_key: str | None) -> None:
        self._mask_key = mask_key
        self._alone = not isinstance(space, Dict)
        if mask_key is not None:
            leaves = {"observation": space} if self._alone else dict(space.spaces)  # type: ignore[attr-defined]
            if ACTION_MASK in leaves:
                raise ConfigError(
                    f"[env] mask_key = {mask_key!r}: the observations have a leaf {ACTION_MASK!r} already, which is "
                    "used without it"
                )
            space = Dict({**leaves, ACTION_MASK: _masks_of(actions, mask_key)})
        self.space = packed_space(space, actions)

    @property
    def masks_actions(self) -> bool:
        """Whether what is seen says which actions are allowed."""
        return isinstance(self.space, Packed) and bool(self.space.choices)

    def __call__(self, observation: Any, infos: Mapping[str, Any], over: bool) -> Any:
        """Return what the agent sees.

        Args:
            observation: as the game gives it.
            infos: of the agent.
            over: whether the agent is out, and so needs no mask.

        Raises:
            ValueError: the observation is not of its space, or the mask is missing.
        """
        if not isinstance(self.space, Packed):
            return observation
        if self._mask_key is not None:
            seen = {"observation": observation} if self._alone else observation
            observation = {**seen, ACTION_MASK: self._mask(infos, over)}
        return self.space.pack(observation)

    def _mask(self, infos: Mapping[str, Any], over: bool) -> npt.NDArray[Any]:
        assert self._mask_key is not None
        mask = infos.get(self._mask_key)
        if mask is not None:
            return np.concatenate(mask) if isinstance(mask, tuple) else np.asarray(mask)
        if not over:
            raise ValueError(
                f"its infos have no {self._mask_key!r}, which [env] mask_key names; there is "
                f"{', '.join(infos) or 'nothing'}"
            )
        assert isinstance(self.space, Packed)
        return np.zeros(self.space.leaves[ACTION_MASK].shape or (), np.int8)


def _masks_of(actions: Space[Any], mask_key: str) -> MultiBinary:
    if isinstance(actions, Discrete):
        return MultiBinary(int(actions.n))
    if isinstance(actions, MultiDiscrete):
        return MultiBinary(int(actions.nvec.sum()))
    raise ConfigError(
        f"[env] mask_key = {mask_key!r}: masks go with Discrete and MultiDiscrete actions, not with {actions}; leave "
        "it out"
    )
