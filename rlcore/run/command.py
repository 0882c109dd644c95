"""A run that a command trains: what shows it, how far it goes, its signals, and what is said at its end."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tqdm.contrib.logging import logging_redirect_tqdm

from rlcore.config.sections import Config
from rlcore.core_hooks.status import StatusHook
from rlcore.core_hooks.time_limit import TimeLimit
from rlcore.errors import RlcoreError, describe
from rlcore.process import interrupts
from rlcore.process.signals import GraceExpired, StopAtOnce, stop_on_signal
from rlcore.process.watchdog import Hung
from rlcore.run.asked import Asked
from rlcore.run.ending import Ending, StoppedAtStart, unexpected
from rlcore.run.ready import Run
from rlcore.run.showing import progress_hooks
from rlcore.run.summary import summary
from rlcore.run_folder.status import Status


def command_hooks(asked: Asked, config: Config, status: Status) -> list[Any]:
    """Return the hooks that a run of a command has besides those of its config."""
    hooks: list[Any] = [StatusHook(status), *progress_hooks(config, asked.quiet)]
    if asked.time_limit is not None:
        hooks.append(TimeLimit(*asked.time_limit))
    return hooks


def train_as_asked(run: Run, asked: Asked) -> None:
    """Train a run as far as the command says."""
    if asked.until is not None:
        run.trainer.stop_at = min(asked.until, run.trainer.stop_at)
    with logging_redirect_tqdm():
        run.trainer.train()


def to_its_end(ending: Ending, train: Callable[[], None], asked: Asked) -> int:
    """Train with signals handled, and say how the run ended; return the exit code.

    Args:
        ending: of the run.
        train: builds and trains it.
        asked: what the command asks.
    """
    # a signal that comes when the run is done changes nothing
    with stop_on_signal(ending.request_stop, asked.grace, ending.saving, ending.give_up) as received:
        code = _ended(ending, train, asked.quiet, received)
        interrupts.settle()
        return code or (128 + received[0] if received and not ending.done else 0)


def say_its_end(ending: Ending, quiet: bool) -> None:
    """Write the status of a run whose loop is over, and print what it reached; the grace time may end meanwhile."""
    try:
        ending.stopped()
    except GraceExpired:  # it comes once
        ending.stopped()
    if not quiet:
        with suppress(GraceExpired):
            sys.stdout.write(f"{summary(ending.built)}\n")


def _ended(ending: Ending, train: Callable[[], None], quiet: bool, received: list[int]) -> int:
    """Train, and say how the run ended; return an exit code other than 0 when neither its end nor a stop ended it."""
    try:
        _train_and_say(ending, train, quiet)
    except StopAtOnce as stopped:
        ending.failed(str(stopped))
        sys.stderr.write("stopped at once\n")
        return 128 + stopped.number
    except Hung as hung:
        ending.failed(str(hung))
        sys.stderr.write(f"error: {hung}\n")
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
    say_its_end(ending, quiet)
