"""One of the processes that train together: it builds its share of the run, and trains it."""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from signal import Signals
from typing import TYPE_CHECKING, Any, Final

from tqdm.contrib.logging import logging_redirect_tqdm

from rlcore.config.sections import Config
from rlcore.errors import RankLost, RlcoreError, describe, notes_of
from rlcore.process.watchdog import Hung, Watchdog
from rlcore.ranks.board import Board
from rlcore.ranks.keeping import KeptStates, read_kept
from rlcore.ranks.pulse import Pulse
from rlcore.ranks.waiting import WaitingGroup
from rlcore.restore.choices import ResumeOptions
from rlcore.run.build import build
from rlcore.run.ending import Ending, unexpected
from rlcore.run.showing import progress_hooks
from rlcore.run.summary import summary
from rlcore.stock.status import StatusHook
from rlcore.stock.time_limit import TimeLimit

if TYPE_CHECKING:
    from rlcore.run.ready import Run
    from rlcore.run_folder.status import Status
    from rlcore.types.launcher import MeetingPlace

log = logging.getLogger(__name__)

# the exit code of a rank that says nothing of its end, which is a death
_DIED: Final = 3


@dataclass(frozen=True)
class Order:
    """What the command line says of the run.

    Attributes:
        place: the run folder as the user named it.
        quiet: whether nothing is shown.
        until: frame at which to stop.
        time_limit: at which second of the system's clock to stop, and how long that is in words.
        resume: how to go on with the run that is there; None to begin one.
        enable: plugins that it imports besides.
        disable: plugins that it does not import.
    """

    place: Path
    quiet: bool = False
    until: int | None = None
    time_limit: tuple[float, str] | None = None
    resume: ResumeOptions | None = None
    enable: tuple[str, ...] = ()
    disable: tuple[str, ...] = ()


@dataclass(frozen=True)
class Start:
    """What a generation of ranks begins with.

    Attributes:
        generation: how often ranks were started for this run, this time included.
        again: whether ranks before these have begun the run.
        further: whether they have got further than where they began, so that the order's words on a resume are done.
        place: where each rank has kept the state from which this generation goes on; None for the latest checkpoint.
        saves: why the run has failed, where this generation does no more than save the state from which it goes on.
    """

    generation: int
    again: bool = False
    further: bool = False
    place: int | None = None
    saves: str = ""


def hooks_of_first(config: Config, order: Order, status: Status) -> list[Any]:
    """Return the hooks that the first rank has besides those of the config."""
    hooks: list[Any] = [StatusHook(status), *progress_hooks(config, order.quiet)]
    if order.time_limit is not None:
        hooks.append(TimeLimit(*order.time_limit))
    return hooks


class Rank:
    """A rank of one generation.

    Args:
        rank: its number.
        config: of the whole run.
        order: what the command line says.
        board: where the supervisor and the ranks see each other.
        start: of the generation.
        every: seconds between two states that it keeps, at least.
    """

    def __init__(self, rank: int, config: Config, order: Order, board: Board, start: Start, every: float = 0.0) -> None:
        self._every = every
        self._rank = rank
        self._config = config
        self._order = order
        self._board = board
        self._start = start
        self._ending = Ending(order.place)

    def train(self, launcher: MeetingPlace) -> int:
        """Train to the end of the run, and return the exit code; the board has it where this is no death."""
        if self._rank:
            logging.getLogger("rlcore").setLevel(logging.WARNING)
        try:
            self._train(WaitingGroup(launcher.join(self._rank)))
            code = 0
        except (RankLost, Hung) as died:
            log.error("rank %d: %s", self._rank, died)
            self._board.dies(self._rank, str(died), died.rank if isinstance(died, RankLost) else None)
            return _DIED
        except RlcoreError as error:
            notes = "".join(f"\n  {note}" for note in notes_of(error))
            log.error("error: rank %d: %s%s", self._rank, error, notes)
            code = self._failed(error, error.exit_code)
        except BaseException as error:
            code = self._failed(error, unexpected(error))
        self._board.ends(self._rank, code)
        return code

    def _train(self, group: WaitingGroup) -> None:
        ending, order = self._ending, self._order
        others = self._rank or self._start.saves
        hooks = [] if others else hooks_of_first(self._config, self._order, ending.status)
        watchdog = Watchdog(ending.heart, self._config.run.hang_after, ending.folder, lambda reason: None)
        with Pulse(ending.heart, group, self._tell).beating(), watchdog.watching():
            place = self._start.place
            built = build(
                self._config,
                resume=self._resume(),
                hooks=hooks,
                heart=ending.heart,
                place=order.place,
                group=group,
                kept=None if place is None else read_kept(self._board, self._rank, place),
            )
            built.trainer.saving.last_good = KeptStates(self._board, self._rank, 1 - (place or 0), self._every)
            ending.begin(built)
            self._board.begun(self._rank)
            if self._start.saves:
                self._save(built)
                return
            if order.until is not None:
                built.trainer.stop_at = min(order.until, built.trainer.stop_at)
            with logging_redirect_tqdm():
                built.trainer.train()
            if not self._rank:
                ending.stopped()
                if not order.quiet:
                    sys.stdout.write(f"{summary(built)}\n")

    def _save(self, built: Run) -> None:
        """Save the state from which this generation goes on, with all ranks, and say so where the run has failed."""
        built.trainer.saving.quietly()
        if not self._rank:
            progress = built.trainer.progress
            log.warning("the state of %s %s, before the failure, is saved", progress.unit, progress.now)
            self._ending.failed(self._start.saves)

    def _resume(self) -> bool | ResumeOptions:
        """Return how this generation goes on: as the user said, until something of the run is kept."""
        given = self._order.resume
        if not self._start.again:
            return given or False
        return ResumeOptions() if given is None or self._start.further else given

    def _failed(self, error: BaseException, code: int) -> int:
        self._board.dies(self._rank, describe(error))
        if not self._rank:
            self._ending.failed(self._start.saves or describe(error))  # what ended the run stands
        return code

    def _tell(self) -> None:
        """Tell the supervisor how far this rank is, and stop where all are to."""
        run = self._ending.run
        self._board.pulse(self._rank, 0 if run is None else run.trainer.progress.now)
        if self._board.stop and run is not None and not self._rank:  # all agree with the first
            run.trainer.request_stop(_name(self._board.stop))


def _name(number: int) -> str:
    with suppress(ValueError):
        return Signals(number).name
    return f"signal {number}"
