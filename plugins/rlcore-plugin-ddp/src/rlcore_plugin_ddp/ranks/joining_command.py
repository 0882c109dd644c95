"""`rlcore train` as one of several ranks, which something else has started and watches."""

from __future__ import annotations

import logging
import os
import sys
from dataclasses import replace
from functools import partial
from typing import NoReturn

from rlcore.errors import RankLost, RlcoreError, note
from rlcore.run import Asked, Ending, to_its_end, validated
from rlcore.run_folder import RunState
from rlcore_plugin_ddp.launchers import JoiningLauncher
from rlcore_plugin_ddp.ranks.building import build_launcher
from rlcore_plugin_ddp.ranks.joined import JoinedRank


class _SilentEnding(Ending):
    """The ending of a rank that leaves it to the first to write and to say how the run ended."""

    def stopped_at_start(self) -> None:
        """Say nothing."""

    def stopped(self) -> None:
        """Write nothing."""

    def failed(self, reason: str, state: RunState = "failed-resumable") -> None:
        """Write nothing."""


def train(asked: Asked) -> int:
    """Train; return the exit code."""
    config = validated(asked.raw, asked.enable, asked.disable)
    launcher: JoiningLauncher = build_launcher(config)
    place = launcher.here()
    if place.rank:
        logging.getLogger().setLevel(logging.WARNING)
    ending = _SilentEnding(asked.place) if place.rank else Ending(asked.place)
    asked_here = replace(asked, quiet=asked.quiet or bool(place.rank))
    rank = JoinedRank(place, config, asked_here, ending)
    try:
        return to_its_end(ending, partial(rank.train, launcher), asked_here)
    except RankLost as lost:
        _end(lost)
    except RlcoreError as error:
        note(error, f"on rank {place.rank} of {place.size}")
        raise


def _end(lost: RankLost) -> NoReturn:
    """End this process at once: calls that wait for a rank that is gone would keep it."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(lost.exit_code)
