"""Loggers of a script, which may know less than those of a config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rlcore.errors import ConfigError
from rlcore.loggers.base import LoggerBase
from rlcore.loggers.values import Bins
from rlcore.types import Logger

if TYPE_CHECKING:
    from rlcore.types import State
    from rlcore.types.records import Array

# what the thread of a logger cannot do without, as it is called in every run
_OF_A_LOGGER: Final = ("log_metrics", "log_video", "start", "flush", "close", "load_state_dict")
_OPTIONAL: Final = (
    *("log_metrics", "log_scalar", "log_histogram", "log_video", "log_hparams"),
    *("flush", "close", "state_dict", "load_state_dict"),
)


def as_logger(given: Any) -> Logger:
    """Return `given` if it is a logger of rlcore, or else one that writes through its `log_scalar` or `log_metrics`.

    Raises:
        ConfigError: it has neither.
    """
    if all(_has(given, name) for name in _OF_A_LOGGER):
        return given  # type: ignore[no-any-return]
    if not (_has(given, "log_scalar") or _has(given, "log_metrics")):
        raise ConfigError(f"logger: a {type(given).__name__} has neither log_scalar nor log_metrics")
    return PlainLogger(given)


class PlainLogger(LoggerBase):
    """Writes through an object that takes scalars, and perhaps more; its methods are looked for once."""

    def __init__(self, target: Any) -> None:
        super().__init__()
        self._target = target
        self._takes = frozenset(name for name in _OPTIONAL if _has(target, name))

    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        """Write scalars at a frame, together where the target can."""
        if "log_metrics" in self._takes:
            self._target.log_metrics(dict(metrics), step=step)
            return
        for name, value in metrics.items():
            self._target.log_scalar(name, value, step=step)

    def log_histogram(self, name: str, data: Array, step: int | None = None, bins: Bins = None) -> None:
        """Write a histogram, where the target takes one."""
        if "log_histogram" in self._takes:
            self._target.log_histogram(name, data, step=step, **({} if bins is None else {"bins": bins}))
        else:
            super().log_histogram(name, data, step, bins)

    def log_video(self, name: str, video: Array, step: int | None = None, fps: int = 30) -> None:
        """Write a video, where the target takes one."""
        if "log_video" in self._takes:
            self._target.log_video(name, video, step=step, fps=fps)
        else:
            super().log_video(name, video, step, fps)

    def log_hparams(self, config: Mapping[str, Any]) -> None:
        """Write a config, where the target takes one."""
        if "log_hparams" in self._takes:
            self._target.log_hparams(config)

    def flush(self) -> None:
        """Flush the target, where it can be."""
        if "flush" in self._takes:
            self._target.flush()

    def close(self) -> None:
        """Close the target, where it can be."""
        if "close" in self._takes:
            self._target.close()

    def state_dict(self) -> State:
        """Return the position of the target, where it has one."""
        return dict(self._target.state_dict()) if "state_dict" in self._takes else {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the position of the target, where it has one."""
        if "load_state_dict" in self._takes:
            self._target.load_state_dict(state)


def _has(given: Any, method: str) -> bool:
    # by name, since any part of this counts and a protocol of one method each would say less
    return callable(getattr(given, method, None))
