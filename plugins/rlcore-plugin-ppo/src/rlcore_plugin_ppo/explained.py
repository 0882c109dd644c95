"""The hook that logs how much of the returns the critic explains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import BaseModel

from rlcore import Context, hookimpl
from rlcore.types import MASK

if TYPE_CHECKING:
    from tensordict import TensorDict


class ExplainedVariance:
    """Logs `train/explained_variance` of each batch: 1 - Var(value target - state value) / Var(value target).

    The values are those before the first update, as in Stable-Baselines3. Steps that are masked do not count. Nothing
    is logged where all value targets are alike, as there is nothing to be explained.

    Attributes:
        takes_columns: True; it reads two entries, whatever the form of the batch.
    """

    takes_columns: Final = True

    class Config(BaseModel, extra="forbid"):
        """It has no keys."""

    def __init__(self, config: Config, context: Context) -> None:
        self._is_new = False

    @hookimpl
    def pre_optim_steps(self) -> None:
        """Begin with a new batch."""
        self._is_new = True

    @hookimpl
    def post_epoch_log(self, batch: TensorDict) -> dict[str, float] | None:
        """Return the metric after the first epoch of a batch, when an estimator has written into it."""
        if not self._is_new:
            return None
        self._is_new = False
        target, value = batch.get("value_target", None), batch.get("state_value", None)
        if target is None or value is None:
            return None
        mask = batch.get(MASK, None)
        if mask is not None:
            target, value = target[mask], value[mask]
        target = target.double()
        variance, unexplained = (float(numbers.var(correction=0)) for numbers in (target, target - value))
        return {"train/explained_variance": 1 - unexplained / variance} if variance else None
