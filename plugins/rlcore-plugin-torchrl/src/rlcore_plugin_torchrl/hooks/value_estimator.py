"""Estimates advantages and value targets of a batch, before each epoch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from rlcore.errors import HookArgumentError
from rlcore.types import Stateful, offers
from rlcore_plugin_torchrl.hooks.stock import StockHook

if TYPE_CHECKING:
    from tensordict import TensorDict


class ValueEstimatorHook(StockHook):
    """Calls an estimator on the whole batch before each epoch.

    Args:
        value_estimator: takes a batch and returns it with further entries, or changes it and returns None.

    Raises:
        HookError: it cannot be called.
    """

    destinations: ClassVar[Mapping[str, str]] = MappingProxyType({"pre_epoch": "__call__"})
    default_name: ClassVar[str] = "value_estimator"

    def __init__(self, value_estimator: Callable[[TensorDict], TensorDict | None]) -> None:
        if not callable(value_estimator):
            raise HookArgumentError(f"ValueEstimatorHook: a {type(value_estimator).__name__} cannot be called")
        self.value_estimator = value_estimator

    def __call__(self, batch: TensorDict | None) -> TensorDict | None:
        """Return the batch with estimates; None stays None, where batches go into a replay buffer in the background."""
        return None if batch is None else self.value_estimator(batch)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the estimator, where it has one."""
        estimator = self.value_estimator
        return {"value_estimator": dict(estimator.state_dict())} if offers(estimator, Stateful) else {}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Set the state of the estimator."""
        if "value_estimator" in state_dict:
            self.value_estimator.load_state_dict(state_dict["value_estimator"])  # type: ignore[attr-defined]
