"""The errors from which priorities come: what a loss returns of them, and one that returns none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from torch import Tensor

from rlcore.errors import ConfigError
from rlcore.types import Context, Loss, with_defaults

TD_ERROR: Final = "td_error"
WEIGHT: Final = "priority_weight"


class TDErrors:
    """Reads `td_error` from what an update returned.

    Args:
        buffer: its name in a config, for messages.
        instead: that of one without priorities.
        context: with the loss, where one is built.

    Raises:
        ConfigError: the loss says that it never returns any.
    """

    def __init__(self, buffer: str, instead: str, context: Context) -> None:
        self._buffer, self._instead = buffer, instead
        loss = with_defaults(context.built.get("loss"), Loss)
        if loss.gives_td_error is False:
            raise ConfigError(
                f"[buffer] use: {buffer} needs a loss that returns {TD_ERROR!r} [sample, 1], and this one "
                f"never does; take {instead}, or another loss"
            )
        self._every_loss: tuple[str, ...] = tuple(loss.loss_names)

    def of(self, values: Mapping[str, Tensor]) -> Tensor | None:
        """Return the errors of an update; None where it asked for some losses alone, without any.

        Raises:
            ConfigError: the loss returns none although it was asked for all.
        """
        if TD_ERROR in values:
            return values[TD_ERROR]
        if not values or any(name not in values for name in self._every_loss):
            return None
        raise ConfigError(
            f"[buffer] {self._buffer} needs a loss that returns {TD_ERROR!r} [sample, 1]; this one returns "
            f"{', '.join(values)}. Use {self._instead} with it."
        )
