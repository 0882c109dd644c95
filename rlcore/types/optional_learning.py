"""What collectors and the parts of an update may have besides their interfaces; asked by `offers(part, ...)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import Tensor

    from rlcore.types.models import Distribution


class Foretelling(Protocol):
    """A policy that knows some actions before it sees an observation, such as random ones; they ask no network.

    Its `describe` needs the actions alone.
    """

    def foretold(self, noise: Tensor) -> tuple[Tensor, Sequence[bool]] | None:
        """Return the actions that follow from the noise of a batch; `act` would return the same.

        Args:
            noise: `[time, env, ...]`, from `draw`.

        Returns:
            Actions `[time, env, *action]`, in memory that nobody writes to later, and for each time whether those of
            all envs are known; the other rows do not count. None where none is known.
        """
        ...


class WithDistribution(Protocol):
    """An actor whose outputs are parameters of a distribution; those of one without are its actions.

    Attributes:
        distribution: over actions.
    """

    distribution: Distribution
