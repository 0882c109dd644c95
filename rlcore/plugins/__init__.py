"""Plugins and their components: found, imported, registered, and where those are that are not installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore.plugins.component import is_repeated as is_repeated
    from rlcore.plugins.discovery import Installed as Installed
    from rlcore.plugins.discovery import installed as installed
    from rlcore.plugins.known import distribution_of as distribution_of
    from rlcore.plugins.known import lend as lend
    from rlcore.plugins.registry import Owner as Owner

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.plugins.component": "is_repeated",
        "rlcore.plugins.discovery": "Installed installed",
        "rlcore.plugins.known": "distribution_of lend",
        "rlcore.plugins.registry": "Owner",
    },
)
