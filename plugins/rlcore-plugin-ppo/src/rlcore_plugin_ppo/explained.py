"""The hook that logs the explained variance of the critic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import BaseModel

from rlcore import Context, hookimpl
from rlcore.types import MASK

if TYPE_CHECKING:
    from tensordict import TensorDict


class ExplainedVariance:
    """Logs `train/explained_variance` of each batch: 1 - Var(value target - state value) / Var(value target).

    The state values are from before the first update, as in Stable-Baselines3. Masked steps do not count. Nothing is
    logged where all value targets are equal.

    Attributes:
        takes_columns: True; the hook reads batches of both forms.
    """

    takes_columns: Final = True

    class Config(BaseModel, extra="forbid"):
        """It has no keys."""

    def __init__(self, config: Config, context: Context) -> None:
        self._is_new = False

    @hookimpl
    def pre_optim_steps(self) -> None:
        """Note that a batch is new."""
        self._is_new = True

    @hookimpl
    def post_epoch_log(self, batch: TensorDict) -> dict[str, float] | None:
        """Return the metric after the first epoch of a batch, by when an estimator has written its entries."""
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
