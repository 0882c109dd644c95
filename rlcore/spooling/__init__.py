"""Loggers that talk to a server: what is logged goes to a spool on disk, and a sender takes it on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore.spooling.log_server import LogServer as LogServer
    from rlcore.spooling.logger import SpoolingLogger as SpoolingLogger
    from rlcore.spooling.logger import own_spool as own_spool
    from rlcore.spooling.logger import require_library as require_library
    from rlcore.spooling.logger import spool_folder as spool_folder
    from rlcore.spooling.spool import Record as Record

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.spooling.log_server": "LogServer",
        "rlcore.spooling.logger": "SpoolingLogger own_spool require_library spool_folder",
        "rlcore.spooling.spool": "Record",
    },
)
