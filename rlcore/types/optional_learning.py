"""What collectors and the parts of an update may have besides their interfaces; asked by `offers(part, ...)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import Tensor

    from rlcore.types.models import Distribution


class UpdateCounter(Protocol):
    """A buffer that tells before a run how many updates follow a batch; what would never come round is refused."""

    def most_updates(self, batch_steps: int) -> int:
        """Return how many minibatches an epoch has at most, after a batch of so many steps of this process."""
        ...


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


class WorkerReplacer(Protocol):
    """A collector whose worker processes are replaced when they end or hang.

    Attributes:
        replaced_workers: how many were, since this process began.
    """

    replaced_workers: int


class EnvCounter(Protocol):
    """A collector that says how many envs a batch has; one that does not has those of all in each.

    Attributes:
        batch_envs: how many. Where they are fewer than those of the run, the next batch may have others.
    """

    batch_envs: int


class SomeEnvsTaker(Protocol):
    """A part with `forget_episodes()` that takes batches of some of the envs, since it carries nothing between batches.

    Attributes:
        takes_some_envs: whether it does, as it is set.
    """

    takes_some_envs: bool
