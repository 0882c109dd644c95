"""An env that is made when its first frame is wanted, or never: what transforms and models are built with."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rlcore.errors import EnvError
from rlcore.types import Env, EnvSpec
from rlcore.types.part import with_defaults

if TYPE_CHECKING:
    from tensordict import TensorDict

    from rlcore.types import Array, Step


class NotSteppableError(EnvError):
    """Something wanted frames of an env that is only its spec."""


class SpecEnv(Env):
    """Has the spaces of an env, which `reset` makes.

    Args:
        spec: of one env; that of the env once it is made.
        make: returns the env; None where there is none.
    """

    def __init__(self, spec: EnvSpec, make: Callable[[], Env] | None = None) -> None:
        self.spec = spec
        self._make = make
        self._env: Env | None = None

    def reset(self, seed: int | None = None) -> Array:
        """Make the env at the first call, and reset it.

        Raises:
            NotSteppableError: there is none.
        """
        if self._make is None:
            raise NotSteppableError(f"env {self.spec.id!r} is not made here, where its spaces alone are needed")
        if self._env is None:
            self._env = self._make()
            self.spec = self._env.spec
        return self._env.reset(seed)

    def step(self, action: Array) -> Step:
        """Step the env; without a `reset` before it, make and reset it."""
        if self._env is None:
            self.reset()
        assert self._env is not None
        return self._env.step(action)

    def batch(self, batch: TensorDict) -> TensorDict:
        """Return a batch `[env, time]` as the env changes it, such as by its transforms."""
        return batch if self._env is None else with_defaults(self._env, Env).batch(batch)

    def close(self) -> None:
        """Close the env that was made, if any."""
        if self._env is not None:
            self._env.close()
