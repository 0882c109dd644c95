"""Numbers and media on their way from the loop to the loggers; and the loggers by their class names.

`Logger` is the base of them all, and of a logger of your own.
"""

from __future__ import annotations

import importlib
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
    if name not in __all__:
        from rlcore.errors import did_you_mean

        raise AttributeError(f"module 'rlcore.loggers' has no attribute {name!r}{did_you_mean(name, __all__)}")
    if name == "Logger":
        return importlib.import_module("rlcore.loggers.base").LoggerBase
    by_name = importlib.import_module("rlcore.loggers.by_name")
    return by_name.logger_class(name) if name in by_name.CLASSES else getattr(by_name, name)


def __dir__() -> list[str]:
    return __all__
