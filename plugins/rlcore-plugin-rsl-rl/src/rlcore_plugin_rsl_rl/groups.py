"""Groups of observations: a TensorDict of them as the one tensor that a collector stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import torch
from torch import Tensor

from rlcore.envs import Packed
from rlcore.errors import ConfigError, EnvError, did_you_mean
from rlcore_plugin_rsl_rl.made import missing_of

if TYPE_CHECKING:
    from collections.abc import Callable


class Groups:
    """Takes groups `[env, *shape]` by name into rows: one group as it is, several packed side by side.

    Args:
        observations: of the env, by group.
        names: of the groups to take; empty for all.
        num_envs: how many envs there are.
        device: of the rows.

    Attributes:
        space: of the rows.

    Raises:
        ConfigError: observations have another form, or there is no such group.
    """

    def __init__(self, observations: Any, names: Sequence[str], num_envs: int, device: torch.device) -> None:
        self._device = device
        self._num_envs = num_envs
        there = names_of(observations)
        for name in names:
            if name not in there:
                raise ConfigError(
                    f"[env] groups: there is no group {name!r}{did_you_mean(name, there)}; there are {', '.join(there)}"
                )
        self._names = list(names) or there
        if not self._names:
            raise ConfigError("[env] get_observations() gives no group of observations")
        shapes = {name: tuple(getattr(observations[name], "shape", (num_envs,))[1:]) for name in self._names}
        self._shapes = shapes
        if wrong := self._wrong(observations):
            raise ConfigError(f"[env] get_observations() gives {wrong}")
        spaces = {name: _space_of(observations[name], shape) for name, shape in shapes.items()}
        alone = self._names[0] if len(self._names) == 1 else None
        self.space: gymnasium.Space[Any] = Packed(spaces) if alone is None else spaces[alone]
        self.rows: Callable[[Any], Tensor] = self._packed if alone is None else self._copied

    def check(self, observations: Any) -> None:
        """Hold observations against those that the env had in the beginning.

        Raises:
            EnvError: a group is missing, or has another form.
        """
        if wrong := self._wrong(observations):
            raise EnvError(f"step() gives {wrong} of the observations")

    def _wrong(self, observations: Any) -> str | None:
        for name, shape in self._shapes.items():
            given = observations[name] if hasattr(observations, "keys") and name in observations.keys() else None  # noqa: SIM118
            if wrong := missing_of(given, (self._num_envs, *shape), self._device):
                return f"{wrong} for the group {name!r}"
        return None

    def _copied(self, observations: Mapping[str, Tensor]) -> Tensor:
        """Return the one group in memory of its own."""
        group = observations[self._names[0]]
        return group.to(_held(group), copy=True)

    def _packed(self, observations: Mapping[str, Tensor]) -> Tensor:
        """Return rows of all groups, in memory of their own."""
        space: Any = self.space
        rows: Tensor = space.joined({name: observations[name] for name in self._names})
        return rows


def names_of(observations: Any) -> list[str]:
    """Return the names of the groups of observations.

    Raises:
        ConfigError: observations have no groups.
    """
    if not hasattr(observations, "keys"):
        raise ConfigError(
            f"[env] get_observations() gives a {type(observations).__name__}; rsl_rl 5 takes a TensorDict of groups"
        )
    return [str(name) for name in observations.keys()]  # noqa: SIM118, a TensorDict iterates over its rows


def _space_of(group: Tensor, shape: tuple[int, ...]) -> gymnasium.Space[Any]:
    if _held(group) == torch.uint8:
        return gymnasium.spaces.Box(0, 255, shape, np.uint8)
    return gymnasium.spaces.Box(-np.inf, np.inf, shape, np.float32)


def _held(group: Tensor) -> torch.dtype:
    """Return the dtype in which rows hold a group: that of pictures, else single precision."""
    return torch.uint8 if group.dtype == torch.uint8 else torch.float32
