"""From a config to a ready trainer in its folder, and how a run ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore.config.sections import Config as Config
    from rlcore.config.sections import Section as Section
    from rlcore.config.sections import find_component as find_component
    from rlcore.config.sections import find_launcher as find_launcher
    from rlcore.plugins.host import PluginHost as PluginHost
    from rlcore.plugins.known import published as published
    from rlcore.run.asked import Asked as Asked
    from rlcore.run.asked import ResumeOptions as ResumeOptions
    from rlcore.run.checking import try_out as try_out
    from rlcore.run.checking import validated as validated
    from rlcore.run.claim import claimed as claimed
    from rlcore.run.command import command_hooks as command_hooks
    from rlcore.run.command import say_its_end as say_its_end
    from rlcore.run.command import to_its_end as to_its_end
    from rlcore.run.command import train_as_asked as train_as_asked
    from rlcore.run.ending import Ending as Ending
    from rlcore.run.ending import StoppedAtStart as StoppedAtStart
    from rlcore.run.ending import unexpected as unexpected
    from rlcore.run.env_maker import EnvMaker as EnvMaker
    from rlcore.run.process_state import choose_device as choose_device
    from rlcore.run.process_state import prepare_process as prepare_process
    from rlcore.run.ready import Run as Run
    from rlcore.run.resume import check_unchanged_since_latest as check_unchanged_since_latest
    from rlcore.run.saved import Saved as Saved
    from rlcore.run.saved import of_policy as of_policy
    from rlcore.run.saved import read_saved as read_saved
    from rlcore.run.saved_parts import AgentBuilder as AgentBuilder
    from rlcore.run.saved_parts import AgentParts as AgentParts
    from rlcore.run.single_parts import LoggerOfRun as LoggerOfRun
    from rlcore.run.single_parts import build_loggers as build_loggers
    from rlcore.run.single_parts import open_backend as open_backend

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.plugins.host": "PluginHost",
        "rlcore.plugins.known": "published",
        "rlcore.run.env_maker": "EnvMaker",
        "rlcore.run.saved": "Saved of_policy read_saved",
        "rlcore.run.saved_parts": "AgentBuilder AgentParts",
        "rlcore.config.sections": "Config Section find_component find_launcher",
        "rlcore.run.checking": "try_out validated",
        "rlcore.run.asked": "Asked ResumeOptions",
        "rlcore.run.claim": "claimed",
        "rlcore.run.command": "command_hooks say_its_end to_its_end train_as_asked",
        "rlcore.run.ending": "Ending StoppedAtStart unexpected",
        "rlcore.run.ready": "Run",
        "rlcore.run.resume": "check_unchanged_since_latest",
        "rlcore.run.process_state": "choose_device prepare_process",
        "rlcore.run.single_parts": "LoggerOfRun build_loggers open_backend",
    },
)
