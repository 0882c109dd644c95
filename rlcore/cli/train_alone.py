"""`rlcore train` in one process: build the run and train it, with a companion and a watchdog beside it."""

from __future__ import annotations

import logging
from functools import partial

from rlcore.config.sections import Config
from rlcore.process import companion, forks
from rlcore.process.signals import GraceExpired
from rlcore.process.watchdog import Watchdog
from rlcore.run.asked import Asked
from rlcore.run.build import build
from rlcore.run.checking import validated
from rlcore.run.command import command_hooks, to_its_end, train_as_asked
from rlcore.run.ending import Ending
from rlcore.state.restoring import told

log = logging.getLogger(__name__)


def run(asked: Asked, dry_run: bool) -> int:
    """Train; return the exit code."""
    config = validated(asked.raw, asked.enable, asked.disable)
    if dry_run:
        build(config, write=False).close()
        print(f"{asked.raw.path}: everything can be built; nothing was written")
        return 0
    ending = Ending(asked.place)
    return to_its_end(ending, partial(_train, ending, config, asked), asked)


def _train(ending: Ending, config: Config, asked: Asked) -> None:
    """Build the run, and train it until it is done or asked to stop."""
    beside = companion.start(ending.folder, config.run.hang_after)
    watchdog = Watchdog(ending.heart, config.run.hang_after, ending.folder, ending.last_resort, companion=beside)
    forks.end_forks_with_this()
    hooks = command_hooks(asked, config, ending.status)
    with watchdog.watching():
        built = build(config, resume=asked.resume or False, hooks=hooks, heart=ending.heart, place=ending.named)
        ending.begin(built)
        for line in told(built.report):
            log.info("%s", line)
        try:
            train_as_asked(built, asked)
        except GraceExpired:
            log.warning("the run was over; its shutdown took longer than the grace time")
