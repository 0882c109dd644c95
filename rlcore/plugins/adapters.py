"""Adapts parts of other libraries that a script hands over, by what plugins have for these libraries."""

from __future__ import annotations

import os
import sys
from typing import Any, Final

from rlcore.plugins.catalogue import PREFIX, PUBLISHED
from rlcore.plugins.discovery import installed
from rlcore.plugins.host import NO_PLUGINS
from rlcore.plugins.known import not_installed

# of entry points: each has the name of a library's package, and names a function that takes a part and returns it
GROUP: Final = "rlcore.adapters"


def adapted(part: Any) -> Any:
    """Return a part that a script handed over, made whole where it is of a library that a plugin has an adapter for.

    An adapter gets every part while its library is imported, as a part of another class may hold one of the library.

    Raises:
        MissingPluginError: the part is of a library whose adapter is published and not installed.
        PluginError: an adapter cannot be imported.
    """
    blocked = f" ({NO_PLUGINS} is set)" if os.environ.get(NO_PLUGINS) else ""
    adapters = {} if blocked else {adapter.name: adapter for adapter in installed(GROUP)}
    for library, adapter in adapters.items():
        if library in sys.modules:
            part = adapter.load("the adapter")(part)
    libraries = {kind.__module__.partition(".")[0] for kind in type(part).__mro__}
    for plugin, published in PUBLISHED.items():
        if missing := libraries.intersection(published.adapts) - adapters.keys():
            raise not_installed(f"a {type(part).__name__} of {missing.pop()} is taken by", PREFIX + plugin, blocked)
    return part
