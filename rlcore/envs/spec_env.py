"""An env that is only its spec: what transforms and models are built with where no env is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.errors import EnvError
from rlcore.types import EnvSpec

if TYPE_CHECKING:
    from rlcore.types import Array, Step


class NotSteppableError(EnvError):
    """Something wanted frames of an env that is only its spec."""


class SpecEnv:
    """Has the spaces of an env, and no env.

    Args:
        spec: of one env.
    """

    def __init__(self, spec: EnvSpec) -> None:
        self.spec = spec

    def reset(self, seed: int | None = None) -> Array:
        """Raise: there is no env.

        Raises:
            NotSteppableError: always.
        """
        raise NotSteppableError(f"env {self.spec.id!r} is not made here, where its spaces alone are needed")

    def step(self, action: Array) -> Step:
        """Raise, as `reset` does."""
        self.reset()
        raise AssertionError

    def close(self) -> None:
        """Do nothing: there is nothing to release."""
