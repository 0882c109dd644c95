"""Builders for scripts: parts of a training loop from one flat settings object, without a config file.

A settings object is anything with attributes: a dataclass, a namespace, an `argparse` result, an OmegaConf node. The
parts come from plugins, which are imported when a builder is called.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rlcore.helpers.trainers import make_trainer as make_trainer

_PLACES: Final = {
    "make_trainer": "rlcore.helpers.trainers",
}
__all__ = sorted(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'rlcore.helpers' has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return __all__
