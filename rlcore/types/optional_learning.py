"""What collectors and the parts of an update may have besides their interfaces; asked by `offers(part, ...)`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import Tensor

    from rlcore.types.models import Distribution
    from rlcore.types.records import Key


class SeparableLoss(Protocol):
    """A loss that computes each of its losses alone, so that those nobody minimises in an update cost nothing.

    Attributes:
        loss_names: every `loss_*` that it returns, in its order.
    """

    loss_names: tuple[str, ...]

    def __call__(self, minibatch: Mapping[Key, Tensor], names: Collection[str] | None = None) -> dict[str, Tensor]:
        """Return the losses that are asked for, and the metrics that come with them.

        Args:
            minibatch: as for every loss.
            names: some of `loss_names`; None for all.

        Returns:
            Those losses and no other, each with the value and the gradients that it has when all are asked for. The
            keys depend on `names` alone. What a buffer reads, `td_error`, comes with the loss of the critics.
        """
        ...


class LossInTurn(Protocol):
    """A loss, a `SeparableLoss` too, whose losses may be taken one after the other within an update.

    The optimizers that are due then step in the order of their losses in `loss_names`, and each loss is computed at the
    weights that the step before it left, as of an actor that follows the critics of the same update. Optimizers that
    name no losses step together.

    Attributes:
        in_turn: whether they are.
    """

    in_turn: bool


class SideBySideLoss(Protocol):
    """A loss, a `SeparableLoss` too, that may be asked for some of its losses by several threads at the same time.

    What it computes for one side reads the minibatch and the weights, writes nothing that another side reads, and
    draws nothing from the global generators. That sides share no parameters is seen by the learner.

    Attributes:
        sides: the names of `loss_names` that one thread computes, for each thread; what has much in common, as the
            objective of an actor and its entropy, is one side.
    """

    sides: tuple[tuple[str, ...], ...]


class PartTrainer(Protocol):
    """A loss that says which parts of the model each of its losses trains.

    An optimizer that minimises a loss by name, and moves none of the parts that it trains, is then refused before the
    first frame; else the first update finds that an optimizer has no step to take.

    Attributes:
        trains: by the name of a loss, the parts of the model to which it has gradients; it has none to other parts.
    """

    trains: Mapping[str, tuple[str, ...]]


class WithTDError(Protocol):
    """A loss that says whether a buffer may set priorities from what it returns.

    Attributes:
        gives_td_error: whether it returns `td_error`; False is refused by a buffer that needs it, before the first
            frame.
    """

    gives_td_error: bool


class LossChooser(Protocol):
    """An optimizer that minimises some of the losses.

    Attributes:
        losses: their names; empty for all.
    """

    losses: tuple[str, ...]


class Paced(Protocol):
    """An optimizer that steps in some of the updates.

    Attributes:
        every: it steps in update number n, counted from 1, where n is a multiple of it.
    """

    every: int


class NumberChecker(Protocol):
    """A part with `schedulable` numbers whose limits its schema cannot know, such as those of the action space."""

    def check_number(self, number: str, value: float) -> None:
        """Refuse a value of one of them; asked about each that a schedule sets, and about its last before the run.

        Raises:
            ConfigError: says why it cannot be.
        """
        ...


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


class MemoryTaker(Protocol):
    """A loss, estimator or buffer that knows policies with a state; a run with one refuses all others.

    A loss and an estimator call the parts of the model as `rlcore.types` says, and average over steps whose mask is
    True. A buffer hands out sequences.

    Attributes:
        takes_memory: True.
    """

    takes_memory: bool


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
