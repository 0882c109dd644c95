"""Stops a run whose metric does not get better."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

import torch
from pydantic import BaseModel, Field

from rlcore import Last
from rlcore.errors import HookArgumentError, HookError, did_you_mean
from rlcore.types import Context, Key
from rlcore_plugin_torchrl.hooks.stock import StockHook

if TYPE_CHECKING:
    from rlcore.types import Trainer

log = logging.getLogger(__name__)

Mode = Literal["min", "max"]


class EarlyStopping(StockHook):
    """Asks the trainer to stop when the latest value of a metric did not improve for some frames.

    While the metric does not exist yet, it waits. A run that it stopped and that is resumed decides again by the same
    figures: it stops at once, unless `patience` is larger now. Of several ranks the first decides, by its own figures.

    Args:
        monitor: name of the metric.
        mode: whether smaller (`min`) or larger (`max`) values are better.
        min_delta: by how much a value must be better to count as an improvement.
        patience: frames without an improvement after which to stop.
        wait_for: frames at the beginning that are passed over.
        check_finite: whether to stop at a value that is not finite.

    Raises:
        HookError: another mode, or a negative number of frames.

    Attributes:
        best_score: so far; None before the first value that counts.
        stop_reason: None while the run goes on.
    """

    destinations: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"setup": "decide_again", "post_steps_log": "__call__", "shutdown": "say_what_was_missing"}
    )
    default_name: ClassVar[str] = "early_stopping"

    def __init__(
        self,
        *,
        monitor: Key = "r_evaluation",
        mode: Mode = "max",
        min_delta: float = 0.0,
        patience: int = 100_000,
        wait_for: int = 1_000_000,
        check_finite: bool = True,
    ) -> None:
        if mode not in ("min", "max"):
            raise HookArgumentError(f"EarlyStopping: mode = {mode!r}: expected 'min' or 'max'")
        for name, frames in (("patience", patience), ("wait_for", wait_for)):
            if frames < 0:
                raise HookArgumentError(f"EarlyStopping: {name} = {frames}: expected a number of frames")
        self.monitor = str(monitor)
        self.mode = mode
        self.min_delta = float(min_delta)
        self.patience = int(patience)
        self.wait_for = int(wait_for)
        self.check_finite = check_finite
        self.best_score: float | None = None
        self.stop_reason: str | None = None
        self._last_improvement_frame = 0
        self._trainer: Trainer | None = None

    def attach(self, trainer: Trainer) -> None:
        """Watch the metrics of this trainer."""
        self._trainer = trainer

    def decide_again(self) -> None:
        """At the beginning, decide again about a run that was stopped before."""
        if self.stop_reason is not None:
            self.stop_reason = None
            self()

    def __call__(self, batch: Any = None) -> None:
        """Look at the metric, and ask for a stop when it is time.

        Raises:
            HookError: no trainer is known.
        """
        trainer = self._trainer
        if trainer is None:
            raise HookError("EarlyStopping: it knows no trainer; call register(trainer)")
        score, frames = self._newest(trainer), trainer.progress.now
        if score is None or trainer.stop_reason is not None or frames < self.wait_for:
            return
        if self.check_finite and not math.isfinite(score):
            self._stop(trainer, f"metric {self.monitor!r} is not finite ({score})")
        elif self._is_improvement(score):
            self.best_score, self._last_improvement_frame = score, frames
        elif frames - self._last_improvement_frame >= self.patience:
            waited = frames - self._last_improvement_frame
            self._stop(trainer, f"metric {self.monitor!r} did not improve for {waited} {trainer.progress.clock}")

    def say_what_was_missing(self) -> None:
        """At the end, warn of a metric that never came; a misspelt name would go unnoticed."""
        if self._trainer is None or self.best_score is not None or self.stop_reason is not None:
            return
        metrics = self._trainer.metrics
        if metrics.newest(self.monitor) is None:
            log.warning(
                "EarlyStopping: metric %r was never logged%s", self.monitor, did_you_mean(self.monitor, metrics.latest)
            )

    def state_dict(self) -> dict[str, Any]:
        """Return the best value, when it came, and why the run was stopped."""
        return {
            "best_score": self.best_score,
            "stop_reason": self.stop_reason,
            "last_improvement_frame": self._last_improvement_frame,
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Set them."""
        self.best_score = state_dict["best_score"]
        self.stop_reason = state_dict["stop_reason"]
        self._last_improvement_frame = state_dict["last_improvement_frame"]

    def _newest(self, trainer: Trainer) -> float | None:
        """Return the latest value; one that a hook before this one returned is not among the metrics yet."""
        value = trainer.hooks.collected.get(self.monitor)
        if value is None:
            return trainer.metrics.newest(self.monitor)
        if isinstance(value, Last):
            value = value.value
        return float(torch.as_tensor(value, dtype=torch.float64).mean())

    def _is_improvement(self, score: float) -> bool:
        if self.best_score is None:
            return True
        if self.mode == "max":
            return score > self.best_score + self.min_delta
        return score < self.best_score - self.min_delta

    def _stop(self, trainer: Trainer, reason: str) -> None:
        self.stop_reason = reason
        trainer.request_stop(reason)


class EarlyStoppingConfig(BaseModel, extra="forbid"):
    """What must get better, and for how long to wait."""

    monitor: str = Field("evaluation/return", description="name of the metric")
    mode: Mode = Field("max", description="whether smaller or larger values are better")
    min_delta: float = Field(0.0, ge=0, description="by how much a value must be better")
    patience: int = Field(100_000, ge=0, description="frames without an improvement after which to stop")
    wait_for: int = Field(0, ge=0, description="frames at the beginning that are passed over")
    check_finite: bool = Field(True, description="stop at a value that is not finite")


class _FromConfig:
    """Builds the hook of a config: of several ranks on the first alone, which evaluates, and whose stop stops all."""

    ranks: Final = "first"

    def __call__(self, config: EarlyStoppingConfig, context: Context) -> Any:
        """Return the hook."""
        return EarlyStopping(**dict(config)).as_component()


from_config: Final = _FromConfig()
