"""From a config to a ready trainer in its folder, and how a run ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore.config.sections import Config as Config
    from rlcore.config.sections import find_launcher as find_launcher
    from rlcore.run.asked import Asked as Asked
    from rlcore.run.checking import checked_config as checked_config
    from rlcore.run.checking import lacking_data as lacking_data
    from rlcore.run.checking import validated as validated
    from rlcore.run.claim import claimed as claimed
    from rlcore.run.command import command_hooks as command_hooks
    from rlcore.run.command import say_its_end as say_its_end
    from rlcore.run.command import to_its_end as to_its_end
    from rlcore.run.command import train_as_asked as train_as_asked
    from rlcore.run.ending import Ending as Ending
    from rlcore.run.ending import StoppedAtStart as StoppedAtStart
    from rlcore.run.ending import unexpected as unexpected
    from rlcore.run.loggers import LoggerOfRun as LoggerOfRun
    from rlcore.run.loggers import build_loggers as build_loggers
    from rlcore.run.process_state import choose_device as choose_device
    from rlcore.run.process_state import prepare_process as prepare_process
    from rlcore.run.ready import Run as Run
    from rlcore.run.resume import check_unchanged_since_latest as check_unchanged_since_latest
    from rlcore.run.shares import divided as divided

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.config.sections": "Config find_launcher",
        "rlcore.run.checking": "checked_config lacking_data validated",
        "rlcore.run.asked": "Asked",
        "rlcore.run.claim": "claimed",
        "rlcore.run.command": "command_hooks say_its_end to_its_end train_as_asked",
        "rlcore.run.ending": "Ending StoppedAtStart unexpected",
        "rlcore.run.ready": "Run",
        "rlcore.run.resume": "check_unchanged_since_latest",
        "rlcore.run.shares": "divided",
        "rlcore.run.process_state": "choose_device prepare_process",
        "rlcore.run.loggers": "LoggerOfRun build_loggers",
    },
)
