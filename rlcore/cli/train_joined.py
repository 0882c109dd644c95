"""`rlcore train` as one of several ranks, which something else has started and watches."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import NoReturn

from rlcore.cli.durations import spoken
from rlcore.cli.train_alone import resume_options, to_its_end
from rlcore.config.raw import RawConfig
from rlcore.config.sections import find_launcher
from rlcore.errors import RankLost, RlcoreError, note
from rlcore.process.age import age
from rlcore.process.signals import stop_on_signal
from rlcore.ranks.joined import JoinedRank
from rlcore.ranks.rank import Order
from rlcore.run.checking import validated
from rlcore.run.ending import Ending
from rlcore.run_folder.status import RunState
from rlcore.types.context import Context
from rlcore.types.launcher import JoiningLauncher

log = logging.getLogger(__name__)


class _SilentEnding(Ending):
    """The ending of a rank that leaves it to the first to write and to say how the run ended."""

    def stopped_at_start(self) -> None:
        """Say nothing."""

    def stopped(self) -> None:
        """Write nothing."""

    def failed(self, reason: str, state: RunState = "failed-resumable") -> None:
        """Write nothing."""


def run(options: argparse.Namespace, raw: RawConfig) -> int:
    """Train; return the exit code."""
    config = validated(raw, options.enable, options.disable)
    assert config.ranks is not None
    provided, keys = find_launcher(config.ranks, config.host)
    context = Context.alone(config.run.name).for_component("launcher", provided.component.name)
    launcher: JoiningLauncher = provided.build(keys, context)
    place = launcher.here()
    named = Path(options.resume) if options.resume else config.run.place
    if place.rank:
        logging.getLogger("rlcore").setLevel(logging.WARNING)
    ending = _SilentEnding(named) if place.rank else Ending(named)
    limit = (
        None if options.max_time is None else (time.monotonic() - age() + options.max_time, spoken(options.max_time))
    )
    order = Order(named, options.quiet or bool(place.rank), options.until, limit, resume_options(options))
    with stop_on_signal(ending.request_stop, options.grace, ending.saving, ending.give_up) as received:
        rank = JoinedRank(place, config, order, ending)
        try:
            return to_its_end(ending, partial(rank.train, launcher), order.quiet, received)
        except RankLost as lost:
            _end(place.rank, lost)
        except RlcoreError as error:
            note(error, f"on rank {place.rank} of {place.size}")
            raise


def _end(rank: int, lost: RankLost) -> NoReturn:
    """End this process at once: calls that wait for a rank that is gone would keep it."""
    log.error("error: rank %d: %s", rank, lost)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(lost.exit_code)
