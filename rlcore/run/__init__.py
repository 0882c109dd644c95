"""From a config to a ready trainer in its folder, and how a run ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore.config.sections import Config as Config
    from rlcore.run.checking import checked_config as checked_config
    from rlcore.run.loggers import LoggerOfRun as LoggerOfRun
    from rlcore.run.loggers import build_loggers as build_loggers
    from rlcore.run.process_state import choose_device as choose_device
    from rlcore.run.process_state import prepare_process as prepare_process

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.run.process_state": "choose_device prepare_process",
        "rlcore.config.sections": "Config",
        "rlcore.run.checking": "checked_config",
        "rlcore.run.loggers": "LoggerOfRun build_loggers",
    },
)
