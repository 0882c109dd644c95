"""The process of a run: its signals, its output streams, its forks, and the watchdog and companion that end it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore.process import companion as companion
    from rlcore.process.board import Board as Board
    from rlcore.process.board import Stillness as Stillness
    from rlcore.process.board import nameless_file as nameless_file
    from rlcore.process.companion import start_run as start_run
    from rlcore.process.forks import end_forks_with_this as end_forks_with_this
    from rlcore.process.forks import end_with_parent as end_with_parent
    from rlcore.process.life import how_it_ended as how_it_ended
    from rlcore.process.life import signal_name as signal_name
    from rlcore.process.signals import AT_ONCE as AT_ONCE
    from rlcore.process.signals import STOPPING as STOPPING
    from rlcore.process.signals import collected_stops as collected_stops
    from rlcore.process.signals import stop_on_signal as stop_on_signal
    from rlcore.process.streams import lenient as lenient
    from rlcore.process.streams import show_log as show_log
    from rlcore.process.this_process import age as age
    from rlcore.process.this_process import usable_cores as usable_cores
    from rlcore.process.watchdog import Hung as Hung
    from rlcore.process.watchdog import Watchdog as Watchdog

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.process": "companion",
        "rlcore.process.board": "Board Stillness nameless_file",
        "rlcore.process.companion": "start_run",
        "rlcore.process.forks": "end_forks_with_this end_with_parent",
        "rlcore.process.life": "how_it_ended signal_name",
        "rlcore.process.signals": "AT_ONCE STOPPING collected_stops stop_on_signal",
        "rlcore.process.streams": "lenient show_log",
        "rlcore.process.this_process": "age usable_cores",
        "rlcore.process.watchdog": "Hung Watchdog",
    },
)
