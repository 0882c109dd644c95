"""Adapters for loggers that have some of the methods of `LoggerBase` alone, such as those of a script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rlcore.errors import ConfigError
from rlcore.loggers.base import LoggerBase
from rlcore.types import Logger
from rlcore.types.part import with_defaults

if TYPE_CHECKING:
    from rlcore.loggers.values import Bins
    from rlcore.types.records import Array

_METHODS: Final = {
    name for base in LoggerBase.__mro__ for name, value in vars(base).items() if callable(value) and name[0] != "_"
}
# methods that a library may declare with other arguments
_ADAPTED: Final = {"log_metrics", "log_scalar", "log_histogram", "log_video", "state_dict", "step_of"}


def as_logger(target: Any) -> Logger:
    """Return the target itself if it is a `Logger`, else an adapter with the missing methods.

    Raises:
        ConfigError: the target has neither log_scalar nor log_metrics.
    """
    if isinstance(target, Logger):
        return target
    return PlainSender(target) if with_defaults(target, Logger).unsent is not None else PlainLogger(target)


class PlainLogger(LoggerBase):
    """Writes through an object with methods of a logger; the missing ones come from `LoggerBase`."""

    def __init__(self, target: Any) -> None:
        super().__init__()
        self._target = target
        # looked up once, and by name, as a target may have any of them
        methods = {name: value for name in _METHODS if callable(value := getattr(target, name, None))}
        self._takes = methods.keys()
        if not self._takes & {"log_metrics", "log_scalar"}:
            raise ConfigError(f"logger: a {type(target).__name__} has neither log_scalar nor log_metrics")
        for name in self._takes - _ADAPTED:
            setattr(self, name, methods[name])  # replaces the method that leaves it out

    @property
    def differences(self) -> int:  # type: ignore[override]
        """Number of differences that the target found from its state."""
        return int(with_defaults(self._target, Logger).differences)

    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        """Write scalars at a frame, together where the target can."""
        if "log_metrics" in self._takes:
            self._target.log_metrics(dict(metrics), step)
            return
        for name, value in metrics.items():
            self._target.log_scalar(name, value, step)

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

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the target, where it has one."""
        return dict(self._target.state_dict()) if "state_dict" in self._takes else {}


class PlainSender(PlainLogger):
    """Writes through an object that sends to a server."""

    @property
    def unsent(self) -> int:  # type: ignore[override]
        """Number of records that wait on disk for the server."""
        return int(self._target.unsent)
