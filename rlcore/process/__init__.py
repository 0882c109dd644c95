"""What stands around the process of a run: signals, streams, forks, a companion, and a watch over what hangs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore.process import age as age
    from rlcore.process import companion as companion
    from rlcore.process.another import start_run as start_run
    from rlcore.process.cores import usable_cores as usable_cores
    from rlcore.process.signals import STOPPING as STOPPING
    from rlcore.process.stops import collected_stops as collected_stops
    from rlcore.process.streams import lenient as lenient
    from rlcore.process.terminal import printable as printable

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.process": "age companion",
        "rlcore.process.another": "start_run",
        "rlcore.process.cores": "usable_cores",
        "rlcore.process.signals": "STOPPING",
        "rlcore.process.stops": "collected_stops",
        "rlcore.process.streams": "lenient",
        "rlcore.process.terminal": "printable",
    },
)
