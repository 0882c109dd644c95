"""Logs where the time of hooks goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, Field

from rlcore import Last
from rlcore.types import Context, Hook, with_defaults
from rlcore_plugin_torchrl.hooks.stock import StockHook
from rlcore_plugin_torchrl.protocols import Timed

if TYPE_CHECKING:
    from rlcore.types import ScriptTrainer


class LogTiming(StockHook):
    """Logs the seconds spent in each registered operation and hook, as `<prefix>/hook/<name>`.

    An operation has the name of its module, or else of its function; with the destination, as in
    `replay_buffer/batch_process`, where several would have the same name.

    Args:
        prefix: of the metrics.
        percall: whether to log the mean over the calls, rather than the sum.
        erase: whether to start over after each log.

    Attributes:
        observer: True; it changes nothing.
    """

    destinations: ClassVar[Mapping[str, str]] = MappingProxyType({"post_steps_log": "__call__"})
    default_name: ClassVar[str] = "log_timing"
    observer = True

    def __init__(self, prefix: str = "time", percall: bool = True, erase: bool = False) -> None:
        self.prefix = prefix
        self.percall = percall
        self.erase = erase
        self._trainer: ScriptTrainer | None = None

    def attach(self, trainer: ScriptTrainer) -> None:
        """Watch the hooks of this trainer."""
        self._trainer = trainer

    def __call__(self, batch: Any = None) -> dict[str, Any]:
        """Return the timings so far."""
        metrics = {}
        for hook in self._hooks():
            if hook.calls:
                seconds = hook.seconds / hook.calls if self.percall else hook.seconds
                metrics[f"{self.prefix}/hook/{hook.name}"] = Last(seconds)
                if self.erase:
                    hook.seconds, hook.calls = 0.0, 0
        return metrics

    def _hooks(self) -> list[Timed]:
        """Return the hooks of the trainer, and each operation of those that are called together."""
        hooks = self._trainer.hooks.hooks if self._trainer is not None else ()
        return [part for hook in hooks for part in _parts_of(hook)]


def _parts_of(hook: Timed) -> Sequence[Timed]:
    """Return the hooks that a hook stands for, or itself."""
    together: Sequence[Timed] | None = with_defaults(hook.instance, Hook).called_together
    return (hook,) if together is None else together


class LogTimingConfig(BaseModel, extra="forbid"):
    """How times are logged."""

    prefix: str = Field("time", description="of the metrics")
    percall: bool = Field(True, description="the mean over the calls, rather than the sum")
    erase: bool = Field(False, description="start over after each log")


def from_config(config: LogTimingConfig, context: Context) -> Any:
    """Return the hook of a config."""
    return LogTiming(**dict(config)).as_component()
