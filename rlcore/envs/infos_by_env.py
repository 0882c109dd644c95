"""The infos of a vector env that gives those of all its envs together, handed to a listener env by env."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from rlcore.types.envs import InfoListener
    from rlcore.types.records import BoolArray

# takes what a vector env gives and the number of an env, and returns what of it is of that env
OfEnv: TypeAlias = Callable[[Mapping[str, Any], int], Mapping[str, Any]]


class InfosByEnv:
    """Hands over the infos of envs that are reset in the step after an end (`reset_mode = "next_step"`).

    Such an env makes one of these in `tell_infos`, so that it costs nothing where nobody asks.

    Args:
        listener: hears of them.
        num_envs: how many envs.
        of_env: returns the infos of one env among those of all.

    Attributes:
        over: `[env]`, whose episodes ended in the last step, so that the next one only resets them.
    """

    def __init__(self, listener: InfoListener, num_envs: int, of_env: OfEnv) -> None:
        self._listener = listener
        self._of_env = of_env
        self.over: BoolArray = np.zeros(num_envs, dtype=bool)

    def reset(self, infos: Mapping[str, Any]) -> None:
        """Hand over the infos of a reset of all envs."""
        self.over[:] = True
        self._tell(infos)
        self.over[:] = False

    def step(self, infos: Mapping[str, Any], over: BoolArray) -> None:
        """Hand over the infos of a step.

        Args:
            infos: of all envs.
            over: `[env]`, whose episodes ended with it.
        """
        self._tell(infos)
        self.over[:] = over

    def _tell(self, infos: Mapping[str, Any]) -> None:
        for index, first in enumerate(self.over.tolist()):
            self._listener(index, self._of_env(infos, index), first)
