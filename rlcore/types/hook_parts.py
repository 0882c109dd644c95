"""What a hook may have besides its points, asked for by `offers`; who brings hooks; and what metrics of hooks are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol


class WithOptimizer(Protocol):
    """A hook that owns an optimizer: its state is that of the optimizer.

    Attributes:
        optimizer: of torch, or an object that steps.
    """

    optimizer: Any


class WithScheduler(Protocol):
    """A hook that owns a scheduler of torch.

    Attributes:
        scheduler: moves the numbers of an optimizer.
    """

    scheduler: Any


class RegistersItself(Protocol):
    """A hook object of a script."""

    def register(self, trainer: Any) -> object:
        """Register its methods with a trainer."""
        ...


class OfRanks(Protocol):
    """A hook that says on which of several ranks it is called.

    Attributes:
        ranks: `"first"`: on rank 0 alone, as one that shows or writes what is the whole run's. A hook that says nothing
            is called on every rank, with the batches of that rank.
    """

    ranks: str


class HookObject(RegistersItself, Protocol):
    """A hook object of a script that takes note of its trainer."""

    def attach(self, trainer: Any) -> object:
        """Take note of it; called once, when the first of its methods is registered."""
        ...


class DictSaver(Protocol):
    """A hook object that has its state under another name."""

    def save_dict(self) -> Mapping[str, Any]:
        """Return the state."""
        ...


class TargetMover(Protocol):
    """A hook object that moves target networks.

    Attributes:
        target_params_updater: with which it does.
    """

    target_params_updater: Any


class Internal(Protocol):
    """A hook that may belong to the command that trains, and not to the run.

    Attributes:
        internal: whether it does, so that figures of hooks leave it out.
    """

    internal: bool


class HookBringer(Protocol):
    """A loss or a buffer with hooks of its own, which act after those of the config; first those of the loss.

    Attributes:
        hooks: objects with points of the loop, without a state between two iterations.
    """

    hooks: Sequence[Any]


# what begins so is never the same twice, and so is no part of the state
WALL_CLOCK: Final = "time/"


class HookMetrics(dict[str, Any]):
    """Metrics that hooks returned at a point of the loop.

    Attributes:
        hooks: the name of the hook that gave it, by name of the metric.
    """

    def __init__(self) -> None:
        super().__init__()
        self.hooks: dict[str, str] = {}


def under_name_of(hook: str, key: str) -> str:
    """Return the name of a metric of a hook where others give one of the same name; a time stays one."""
    if key.startswith(WALL_CLOCK):
        return f"{WALL_CLOCK}{hook}/{key.removeprefix(WALL_CLOCK)}"
    return f"{hook}/{key}"
