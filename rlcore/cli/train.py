"""`rlcore train`: build the run, train it with signals handled, and say at the end what was reached."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from tqdm.contrib.logging import logging_redirect_tqdm

from rlcore.cli import train_seeds
from rlcore.cli.durations import spoken
from rlcore.config.changes import WATCHING
from rlcore.config.core import SAFE_NAME
from rlcore.config.file import read
from rlcore.config.observers import add_observers
from rlcore.config.raw import RawConfig
from rlcore.config.sections import Config, Section
from rlcore.errors import ConfigError, RlcoreError, describe
from rlcore.process import companion, forks
from rlcore.process.age import age
from rlcore.process.signals import GraceExpired, StopAtOnce, stop_on_signal
from rlcore.process.watchdog import Hung, Watchdog
from rlcore.reports.summary import summary
from rlcore.restore.choices import ResumeOptions
from rlcore.run.build import build
from rlcore.run.checking import validated
from rlcore.run.ending import Ending, StoppedAtStart, unexpected
from rlcore.run_folder import folder as run_folder
from rlcore.run_folder.next_config import settle_after_crash
from rlcore.run_folder.trust import check_own
from rlcore.stock.progress_lines import ProgressLines
from rlcore.stock.status import StatusHook
from rlcore.stock.time_limit import TimeLimit

log = logging.getLogger(__name__)

_SHOWN_BY: Final = ("progress-bar", "console-table")


def run(options: argparse.Namespace) -> int:
    """Train; return the exit code."""
    if options.seeds is not None:
        return train_seeds.run(options)
    if options.jobs is not None:
        raise ConfigError("--jobs says how many seeds are trained at a time; add --seeds")
    if options.resume and not options.resume.endswith(".toml"):
        check_own(Path(options.resume), options.trust)  # before anything of it is touched
    _place_config(options)
    raw = read(Path(options.config), options.set)
    if options.resume:
        _name_after(raw, Path(options.resume))
    resumed = None if options.resume is None else run_folder.read_config(_place_of(raw))
    add_observers(raw, options.disable, resumed)
    if options.quiet:
        hooks = raw.values.get("hook", [])
        left_out = {*WATCHING, *(name.removeprefix("core:") for name in WATCHING)}
        raw.values["hook"] = [hook for hook in hooks if hook.get("use") not in left_out]
    config = validated(raw, options.enable, options.disable)
    if options.dry_run:
        build(config, write=False)
        print(f"{options.config}: everything can be built; nothing was written")
        return 0
    ending = Ending(Path(options.resume) if options.resume else config.run.place)
    if options.resume is not None:
        check_own(ending.named, options.trust)
    with stop_on_signal(ending.request_stop, options.grace, ending.saving, ending.give_up) as received:
        code = _to_its_end(ending, config, options)
    if code:
        return code
    return 128 + received[0] if received else 0


def _to_its_end(ending: Ending, config: Config, options: argparse.Namespace) -> int:
    """Train, and say how the run ended; return an exit code other than 0 when neither its end nor a stop ended it."""
    try:
        _train(ending, config, options)
    except (StoppedAtStart, GraceExpired):  # a part may have swallowed the first, and gone on for the grace time
        if ending.run is None:
            ending.stopped_at_start()
            return 0
    except StopAtOnce as stopped:
        ending.failed(str(stopped))
        print("stopped at once", file=sys.stderr)
        return 128 + stopped.number
    except Hung as hung:
        ending.failed(str(hung))
        print(f"error: {hung}", file=sys.stderr)
        return 3
    except BaseException as error:
        ending.failed(describe(error))
        if isinstance(error, RlcoreError):
            raise
        return unexpected(error)
    _say_its_end(ending, options.quiet)
    return 0


def _say_its_end(ending: Ending, quiet: bool) -> None:
    """Write the status of a run whose loop is over, and print what it reached; the grace time may end meanwhile."""
    try:
        ending.stopped()
    except GraceExpired:  # it comes once
        ending.stopped()
    if not quiet:
        with suppress(GraceExpired):
            print(summary(ending.built))


def _train(ending: Ending, config: Config, options: argparse.Namespace) -> None:
    """Build the run, and train it until it is done or asked to stop."""
    beside = companion.start(ending.folder, config.run.hang_after)
    watchdog = Watchdog(ending.heart, config.run.hang_after, ending.folder, ending.last_resort, companion=beside)
    forks.end_with_this()
    hooks: list[Any] = [StatusHook(ending.status)]
    if not options.quiet and not any(_shows(hook) for hook in config.sections["hook"]):
        hooks.append(ProgressLines())
    if options.max_time is not None:
        hooks.append(TimeLimit(time.monotonic() - age() + options.max_time, spoken(options.max_time)))
    with watchdog.watching():
        built = build(config, resume=_resume(options), hooks=hooks, heart=ending.heart, place=ending.named)
        ending.begin(built)
        for restored in built.report:
            if restored.outcome != "not stateful":
                log.info("  %s", restored)
        if options.until is not None:
            built.trainer.stop_at = min(options.until, built.trainer.stop_at)
        with logging_redirect_tqdm():
            try:
                built.trainer.train()
            except GraceExpired:
                log.warning("the run was over; its shutdown took longer than the grace time")


def _shows(hook: Section) -> bool:
    """Return whether a hook shows how far the run is; a bar may want a terminal for that."""
    always = hook.config.model_dump().get("always", True)
    return hook.provided.component.name in _SHOWN_BY and (always or sys.stderr.isatty())


def _resume(options: argparse.Namespace) -> bool | ResumeOptions:
    if options.resume is None:
        given = {"--drop": options.drop, "--fresh": options.fresh, "--accept-changes": options.accept_changes}
        for name in (name for name, value in given.items() if value):
            raise ConfigError(f"{name} says something about a resume; add --resume, or leave it out")
        return False
    return ResumeOptions(tuple(options.drop), tuple(options.fresh), options.accept_changes)


def _name_after(raw: RawConfig, folder: Path) -> None:
    """Call a run as its folder is called; a folder that people renamed as no run may be called keeps its run's name."""
    place = Path(os.path.abspath(folder))  # of "." and ".." too
    if SAFE_NAME.fullmatch(place.name):
        raw.values.setdefault("run", {}).update(folder=str(folder.parent), name=place.name)


def _place_of(raw: RawConfig) -> Path:
    """Return the run folder that a config names; what it should not say there is refused later."""
    run = raw.values.get("run", {})
    names = (run.get("folder", "runs"), run.get("name", "run"))
    return Path(*(str(name) for name in names))


def _place_config(options: argparse.Namespace) -> None:
    """Find the config where `--resume CONFIG` or `--resume RUN` stand alone; a run folder holds its own."""
    if options.config is None and (options.resume or "").endswith(".toml"):
        options.config, options.resume = options.resume, ""
    elif options.config is None and options.resume:
        settle_after_crash(Path(options.resume))
        options.config = str(_config_of(Path(options.resume)))
    elif options.config is None:
        raise ConfigError("rlcore train needs a CONFIG, or --resume RUN")


def _config_of(folder: Path) -> Path:
    """Return the config that a run folder holds.

    Raises:
        ConfigError: there is no such folder, or it holds none.
    """
    config = folder / run_folder.CONFIG_FILE
    if not folder.is_dir():
        raise ConfigError(f"--resume: run folder {str(folder)!r} does not exist; `rlcore runs` lists those there are")
    if not config.is_file():
        raise ConfigError(
            f"--resume: {str(folder)!r} holds no {run_folder.CONFIG_FILE}, so it is no run folder, or the run ended "
            "before it began; name the config too: rlcore train CONFIG --resume"
        )
    return config
