"""Tools for the tests of plugins: toy parts, a small run of them, and a contract suite for every kind of component.

Names are resolved when they are first used, since the plugin module beside them must stay light. Nothing here is used
by a run, except the toy parts when a config names them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rlcore.state.tree import through_checkpoint as through_checkpoint
    from rlcore.testing.compare import difference as difference
    from rlcore.testing.compare import snapshot as snapshot
    from rlcore.testing.light_import import check_light_import as check_light_import
    from rlcore.testing.small_run import TOY_CONFIG as TOY_CONFIG
    from rlcore.testing.small_run import make_config as make_config
    from rlcore.testing.small_run import make_run as make_run
    from rlcore.testing.small_run import make_trainer as make_trainer

_PLACES: Final = {
    "TOY_CONFIG": "rlcore.testing.small_run",
    "check_light_import": "rlcore.testing.light_import",
    "difference": "rlcore.testing.compare",
    "make_config": "rlcore.testing.small_run",
    "make_run": "rlcore.testing.small_run",
    "make_trainer": "rlcore.testing.small_run",
    "snapshot": "rlcore.testing.compare",
    "through_checkpoint": "rlcore.state.tree",
}
__all__ = sorted(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'rlcore.testing' has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return __all__
