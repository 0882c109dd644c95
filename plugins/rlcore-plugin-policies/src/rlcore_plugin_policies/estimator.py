"""The estimators of several policies as one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from rlcore.errors import ConfigError
from rlcore.types import ESTIMATED, Estimator, Key, Part, with_defaults
from rlcore_plugin_policies.batches import OwnBatches

if TYPE_CHECKING:
    from tensordict import TensorDict


class JointEstimator:
    """Lets each estimator write into the batch of its policy, and writes that into the batch of all.

    Args:
        estimators: by the name of their policy, which may have none.
        batches: takes the batches of policies out of those of all.

    Attributes:
        every: when all of them run.

    Raises:
        ConfigError: they run at different times.
    """

    def __init__(self, estimators: Mapping[str, Estimator], batches: OwnBatches) -> None:
        times = {name: estimator.every for name, estimator in estimators.items()}
        if len(set(times.values())) > 1:
            said = " and ".join(f"{time!r} for {name}" for name, time in times.items())
            raise ConfigError(f"[estimator] every: {said}; all policies of a run have the same")
        self.every: Literal["batch", "epoch"] = next(iter(times.values()))
        self._estimators = estimators
        self._batches = batches

    def __call__(self, batch: TensorDict) -> None:
        """Set what the estimators write; zeros in the envs of policies that have none."""
        written: dict[Key, dict[str, Any]] = {}
        for name, estimator in self._estimators.items():
            part = self._batches.of(name, batch)
            collected_keys = {*part.keys(include_nested=True, leaves_only=True)}
            estimator(part)
            estimated_keys = {*ESTIMATED, *(with_defaults(estimator, Part).writes or ())}
            for key in part.keys(include_nested=True, leaves_only=True):
                if key not in collected_keys or key in estimated_keys:
                    written.setdefault(key, {})[name] = part.get(key)
        for key, values in written.items():
            self._batches.put(batch, key, values)
