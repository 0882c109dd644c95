"""`rlcore train` in one process: build the run, train it with signals handled, and say at the end what was reached."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from tqdm.contrib.logging import logging_redirect_tqdm

from rlcore.cli.durations import spoken
from rlcore.config.raw import RawConfig
from rlcore.config.sections import Config
from rlcore.errors import ConfigError, RlcoreError, describe
from rlcore.process import companion, forks, interrupts
from rlcore.process.age import age
from rlcore.process.signals import GraceExpired, StopAtOnce, stop_on_signal
from rlcore.process.watchdog import Hung, Watchdog
from rlcore.restore.choices import ResumeOptions
from rlcore.restore.components import told
from rlcore.run.build import build
from rlcore.run.checking import validated
from rlcore.run.ending import Ending, StoppedAtStart, unexpected
from rlcore.run.showing import progress_hooks
from rlcore.run.summary import summary
from rlcore.stock.status import StatusHook
from rlcore.stock.time_limit import TimeLimit

log = logging.getLogger(__name__)


def run(options: argparse.Namespace, raw: RawConfig) -> int:
    """Train; return the exit code."""
    config = validated(raw, options.enable, options.disable)
    if options.dry_run:
        build(config, write=False).close()
        print(f"{options.config}: everything can be built; nothing was written")
        return 0
    ending = Ending(Path(options.resume) if options.resume else config.run.place)
    with stop_on_signal(ending.request_stop, options.grace, ending.saving, ending.give_up) as received:
        return to_its_end(ending, partial(_train, ending, config, options), options.quiet, received)


def to_its_end(ending: Ending, train: Callable[[], None], quiet: bool, received: Sequence[int]) -> int:
    """Train, and say how the run ended; return the exit code.

    Args:
        ending: of the run.
        train: builds and trains it.
        quiet: whether the summary is left out.
        received: the signals so far, a list that grows; one that comes when the run is done changes nothing.
    """
    code = _ended(ending, train, quiet, received)
    interrupts.settle()
    return code or (128 + received[0] if received and not ending.done else 0)


def _ended(ending: Ending, train: Callable[[], None], quiet: bool, received: Sequence[int]) -> int:
    """Train, and say how the run ended; return an exit code other than 0 when neither its end nor a stop ended it."""
    try:
        _train_and_say(ending, train, quiet)
    except StopAtOnce as stopped:
        ending.failed(str(stopped))
        print("stopped at once", file=sys.stderr)
        return 128 + stopped.number
    except Hung as hung:
        ending.failed(str(hung))
        print(f"error: {hung}", file=sys.stderr)
        return 3
    except BaseException as error:
        if ending.run is None and received:  # what was stopped in its middle raised an error of its own
            ending.stopped_at_start()
            return 0
        ending.failed(describe(error))
        if isinstance(error, RlcoreError):
            raise
        return unexpected(error)
    return 0


def _train_and_say(ending: Ending, train: Callable[[], None], quiet: bool) -> None:
    try:
        interrupts.hand_over()
        train()
    except (StoppedAtStart, GraceExpired):  # a part may have swallowed the first, and gone on for the grace time
        if ending.run is None:
            ending.stopped_at_start()
            return
    _say_its_end(ending, quiet)


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
    hooks: list[Any] = [StatusHook(ending.status), *progress_hooks(config, options.quiet)]
    if options.max_time is not None:
        hooks.append(TimeLimit(time.monotonic() - age() + options.max_time, spoken(options.max_time)))
    with watchdog.watching():
        built = build(
            config, resume=resume_options(options) or False, hooks=hooks, heart=ending.heart, place=ending.named
        )
        ending.begin(built)
        for line in told(built.report):
            log.info("%s", line)
        if options.until is not None:
            built.trainer.stop_at = min(options.until, built.trainer.stop_at)
        with logging_redirect_tqdm():
            try:
                built.trainer.train()
            except GraceExpired:
                log.warning("the run was over; its shutdown took longer than the grace time")


def resume_options(options: argparse.Namespace) -> ResumeOptions | None:
    """Return how the command line says to go on with a run; None to begin one.

    Raises:
        ConfigError: it says something about a resume, and asks for none.
    """
    if options.resume is None:
        given = {"--drop": options.drop, "--fresh": options.fresh, "--accept-changes": options.accept_changes}
        for name in (name for name, value in given.items() if value):
            raise ConfigError(f"{name} says something about a resume; add --resume, or leave it out")
        return None
    return ResumeOptions(tuple(options.drop), tuple(options.fresh), options.accept_changes)
