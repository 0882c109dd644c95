"""Loggers that talk to a server: what is logged goes to a spool on disk, and a sender takes it on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore import Component, hookimpl
from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore_plugin_spool.log_server import LogServer as LogServer
    from rlcore_plugin_spool.logger import SpoolingLogger as SpoolingLogger
    from rlcore_plugin_spool.logger import require_library as require_library
    from rlcore_plugin_spool.logger import spool_folder as spool_folder
    from rlcore_plugin_spool.records import Record as Record

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore_plugin_spool.log_server": "LogServer",
        "rlcore_plugin_spool.logger": "SpoolingLogger require_library spool_folder",
        "rlcore_plugin_spool.records": "Record",
    },
)


@hookimpl
def provide_components() -> list[Component]:
    """Return nothing: the loggers of other plugins are made with this, and it adds the command `rlcore sync`."""
    return []
