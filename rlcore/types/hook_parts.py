"""What a hook may have besides its points, and what metrics of hooks are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rlcore.types.part import Part


class Hook(Part):
    """What a hook may have besides its points.

    Attributes:
        ranks: on which of several ranks it is called: `first` for rank 0 alone, as of one that shows or writes what is
            the whole run's; `all` for every rank, with the batches of that rank.
        internal: whether it belongs to the command that trains, and not to the run, so that figures of hooks leave it
            out.
        called_together: the hooks that it stands for at one point, in which their times are kept; None for itself.
    """

    ranks: str = "all"
    internal: bool = False
    called_together: Sequence[Any] | None = None


class HookObject(Hook):
    """A hook object of a script; `rlcore.TrainerHookBase` is one.

    Attributes:
        optimizer: of torch, or an object that steps, of a hook that has the state of its optimizer.
        scheduler: of torch, of a hook that moves the numbers of an optimizer.
        target_params_updater: of a hook that moves target networks.
    """

    optimizer: Any = None
    scheduler: Any = None
    target_params_updater: Any = None

    def register(self, trainer: Any) -> object:
        """Register its methods with a trainer."""
        return None

    def attach(self, trainer: Any) -> object:
        """Take note of its trainer; called once, when the first of its methods is registered."""
        return None

    def save_dict(self) -> Mapping[str, Any]:
        """Return its state, by the name that this has in TorchRL."""
        return {}

    def check_losses(self) -> None:
        """Look at the losses and gradients of the iteration, of an operation at `optimizer`.

        Called at the end of the iteration, as looking waits for the device.

        Raises:
            NumericalError: one was not finite.
        """


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
