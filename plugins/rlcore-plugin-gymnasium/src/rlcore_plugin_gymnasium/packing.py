"""Envs whose observations are dicts, or whose infos say which actions are allowed: as one packed array."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from rlcore.envs import ACTION_MASK, Packed, is_nested, packed_space, without_choice
from rlcore.errors import ConfigError

if TYPE_CHECKING:
    import numpy.typing as npt


def packed(env: gymnasium.Env[Any, Any], mask_key: str | None) -> gymnasium.Env[Any, Any]:
    """Return an env whose observations are one array.

    Args:
        env: the env.
        mask_key: the info that says which actions are allowed; None where none does.

    Raises:
        ConfigError: a leaf of the observations is not one array, or there cannot be a mask of the actions.
    """
    if mask_key is None and not is_nested(env.observation_space):
        return env
    return PackedObservations(env, mask_key)


class PackedObservations(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Packs observations into rows `[words]`, with the mask of the actions among the leaves.

    Args:
        env: the env.
        mask_key: of the infos; the mask becomes the leaf `action_mask`, beside the leaves of an observation that is a
            dict, or beside `observation`.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], mask_key: str | None) -> None:
        super().__init__(env)
        space = env.observation_space
        self._alone = mask_key is not None and not isinstance(space, gymnasium.spaces.Dict)
        if mask_key is not None:
            leaves = dict(space.spaces) if isinstance(space, gymnasium.spaces.Dict) else {"observation": space}
            leaves[ACTION_MASK] = _space_of_masks(env.action_space, leaves, mask_key)
            space = gymnasium.spaces.Dict(leaves)
        packed = packed_space(space, env.action_space)
        assert isinstance(packed, Packed)
        self.observation_space = self._space = packed
        self._mask_key = mask_key
        self._row = packed.rows()
        self._arrays = packed.arrays(self._row)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Reset the env; the row of its observation."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._packed(observation, info), info

    def step(self, action: Any) -> Any:
        """Step the env; the row of its observation."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._packed(observation, info, bool(terminated)), reward, terminated, truncated, info

    def _packed(self, observation: Any, info: Mapping[str, Any], terminated: bool = False) -> npt.NDArray[np.int64]:
        if self._alone:
            observation = {"observation": observation}
        if self._mask_key is not None:
            observation = {**observation, ACTION_MASK: self._mask(info, terminated)}
        self._space.write(observation, self._arrays)
        if self._space.choices and not terminated and without_choice(self._space, self._row):
            raise ValueError(f"its {ACTION_MASK} allows no action; allow one, or end the episode there")
        return self._row

    def _mask(self, info: Mapping[str, Any], terminated: bool) -> Any:
        try:
            mask = info[self._mask_key]  # type: ignore[index]
        except KeyError:
            if terminated:  # nothing is chosen after the end
                return np.zeros_like(self._arrays[ACTION_MASK])
            raise ValueError(
                f"its infos have no {self._mask_key!r}, which [env] mask_key names; there is "
                f"{', '.join(info) or 'nothing'}"
            ) from None
        if isinstance(mask, tuple):  # as `sample` of MultiDiscrete takes them
            mask = np.concatenate(mask)
        if isinstance(self.action_space, gymnasium.spaces.MultiBinary) and np.shape(mask) == self.action_space.shape:
            raise ValueError(
                f"its info {self._mask_key!r} has one number for each bit, of which a 1 may mean 'allowed' or, for "
                "`MultiBinary.sample`, 'the bit is 1'; give two, whether it may be 0 and whether it may be 1: of a "
                "mask for `sample`, np.stack([mask != 1, mask != 0], -1).ravel()"
            )
        return mask


def _space_of_masks(
    actions: gymnasium.Space[Any], leaves: Mapping[str, gymnasium.Space[Any]], mask_key: str
) -> gymnasium.spaces.MultiBinary:
    """Return the space of the masks of some actions.

    Raises:
        ConfigError: there are none of such actions, or the observations have a mask already.
    """
    if ACTION_MASK in leaves:
        raise ConfigError(
            f"[env] mask_key = {mask_key!r}: the observations have a leaf {ACTION_MASK!r} already, which is "
            "used without it"
        )
    if isinstance(actions, gymnasium.spaces.Discrete):
        return gymnasium.spaces.MultiBinary(int(actions.n))
    if isinstance(actions, gymnasium.spaces.MultiDiscrete):
        return gymnasium.spaces.MultiBinary(int(actions.nvec.sum()))
    if isinstance(actions, gymnasium.spaces.MultiBinary):
        return gymnasium.spaces.MultiBinary(2 * math.prod(actions.shape))
    raise ConfigError(
        f"[env] mask_key = {mask_key!r}: masks go with Discrete, MultiDiscrete and MultiBinary actions, not with "
        f"{actions}; leave it out"
    )
