"""What stands around the process of a run: signals, streams, forks, a companion, and a watch over what hangs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore.process import age as age
    from rlcore.process import companion as companion
    from rlcore.process.another import start_run as start_run
    from rlcore.process.cores import usable_cores as usable_cores
    from rlcore.process.forks import end_with_parent as end_with_parent
    from rlcore.process.forks import end_with_this as end_with_this
    from rlcore.process.nameless import nameless_file as nameless_file
    from rlcore.process.signals import AT_ONCE as AT_ONCE
    from rlcore.process.signals import STOPPING as STOPPING
    from rlcore.process.signals import stop_on_signal as stop_on_signal
    from rlcore.process.stops import collected_stops as collected_stops
    from rlcore.process.streams import lenient as lenient
    from rlcore.process.streams import show_log as show_log
    from rlcore.process.terminal import printable as printable
    from rlcore.process.watchdog import Hung as Hung
    from rlcore.process.watchdog import Watchdog as Watchdog

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.process": "age companion",
        "rlcore.process.another": "start_run",
        "rlcore.process.cores": "usable_cores",
        "rlcore.process.signals": "STOPPING AT_ONCE stop_on_signal",
        "rlcore.process.stops": "collected_stops",
        "rlcore.process.streams": "lenient show_log",
        "rlcore.process.terminal": "printable",
        "rlcore.process.forks": "end_with_parent end_with_this",
        "rlcore.process.nameless": "nameless_file",
        "rlcore.process.watchdog": "Hung Watchdog",
    },
)
