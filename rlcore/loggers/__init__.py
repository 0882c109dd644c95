"""Numbers and media on their way from the loop to the loggers; and the loggers by their class names.

`Logger` is the base of them all, and of a logger of your own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlcore.loggers.base import LoggerBase as Logger
    from rlcore.loggers.by_name import generate_exp_name as generate_exp_name
    from rlcore.loggers.by_name import get_logger as get_logger

__all__ = [
    "CSVLogger",
    "Logger",
    "MLFlowLogger",
    "TensorboardLogger",
    "WandbLogger",
    "generate_exp_name",
    "get_logger",
]


def __getattr__(name: str) -> Any:
    from rlcore.errors import did_you_mean
    from rlcore.loggers import base, by_name

    if name == "Logger":
        return base.LoggerBase
    if name in by_name.CLASSES:
        return by_name.logger_class(name)
    if name in __all__:
        return getattr(by_name, name)
    raise AttributeError(f"module 'rlcore.loggers' has no attribute {name!r}{did_you_mean(name, __all__)}")


def __dir__() -> list[str]:
    return __all__
