"""One of the processes that train together: it builds its share of the run, and trains it."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rlcore import build
from rlcore.errors import RankLost, RlcoreError, describe, notes_of
from rlcore.process import Hung, Watchdog, signal_name
from rlcore.run import Asked, Config, Ending, ResumeOptions, command_hooks, say_its_end, train_as_asked, unexpected
from rlcore_plugin_ddp.ranks.board import RankBoard
from rlcore_plugin_ddp.ranks.keeping import KeptStates, read_kept
from rlcore_plugin_ddp.ranks.pulse import Pulse
from rlcore_plugin_ddp.ranks.waiting import WaitingGroup

if TYPE_CHECKING:
    from rlcore.run import Run
    from rlcore_plugin_ddp.launchers import MeetingPlace

log = logging.getLogger(__name__)

# seconds by which the ranks are more patient with each other than the supervisor, which knows better who is to blame
LATER: Final = 1.0


@dataclass(frozen=True)
class Start:
    """What a generation of ranks begins with.

    Attributes:
        generation: how often ranks were started for this run, this time included.
        again: whether ranks before these have begun the run.
        further: whether they have got further than where they began, so that what was asked of a resume are done.
        place: where each rank has kept the state from which this generation goes on; None for the latest checkpoint.
        saves: why the run has failed, where this generation does no more than save the state from which it goes on.
    """

    generation: int
    again: bool = False
    further: bool = False
    place: int | None = None
    saves: str = ""


class Rank:
    """A rank of one generation.

    Args:
        rank: its number.
        config: of the whole run.
        asked: what the command asks.
        board: where the supervisor and the ranks see each other.
        start: of the generation.
        every: seconds between two states that it keeps, at least.
    """

    def __init__(
        self, rank: int, config: Config, asked: Asked, board: RankBoard, start: Start, every: float = 0.0
    ) -> None:
        self._every = every
        self._rank = rank
        self._config = config
        self._asked = asked
        self._board = board
        self._start = start
        self._ending = Ending(asked.place)

    def train(self, launcher: MeetingPlace) -> int:
        """Train to the end of the run, and return the exit code; the board has it where this is no death."""
        if self._rank:
            logging.getLogger().setLevel(logging.WARNING)
        try:
            self._train(WaitingGroup(launcher.join(self._rank)))
            code = 0
        except (RankLost, Hung) as died:
            log.error("rank %d: %s", self._rank, died)
            self._board.dies(self._rank, str(died), died.rank if isinstance(died, RankLost) else None)
            return RankLost.exit_code  # the board has nothing of its end, so that it is a death
        except RlcoreError as error:
            notes = "".join(f"\n  {note}" for note in notes_of(error))
            log.error("error: rank %d: %s%s", self._rank, error, notes)
            code = self._failed(error, error.exit_code)
        except BaseException as error:
            code = self._failed(error, unexpected(error))
        self._board.ends(self._rank, code)
        return code

    def _train(self, group: WaitingGroup) -> None:
        ending, asked = self._ending, self._asked
        others = self._rank or self._start.saves
        hooks = [] if others else command_hooks(asked, self._config, ending.status)
        watchdog = Watchdog(ending.heart, self._config.run.hang_after, ending.folder, lambda reason: None)
        with Pulse(ending.heart, group, self._tell).beating(), watchdog.watching():
            place = self._start.place
            built = build(
                self._config,
                resume=self._resume(),
                hooks=hooks,
                heart=ending.heart,
                place=asked.place,
                group=group,
                kept=None if place is None else read_kept(self._board, self._rank, place),
            )
            built.trainer.saving.last_good = KeptStates(self._board, self._rank, 1 - (place or 0), self._every)
            ending.begin(built)
            self._board.begun(self._rank)
            if self._start.saves:
                self._save(built)
                return
            train_as_asked(built, asked)
            if not self._rank:
                say_its_end(ending, asked.quiet)

    def _save(self, built: Run) -> None:
        """Save the state from which this generation goes on, with all ranks, and say so where the run has failed."""
        built.trainer.saving.quietly()
        if not self._rank:
            progress = built.trainer.progress
            log.warning("the state of %s %s, before the failure, is saved", progress.unit, progress.now)
            self._ending.failed(self._start.saves)

    def _resume(self) -> bool | ResumeOptions:
        """Return how this generation goes on: as the user said, until something of the run is kept."""
        asked = self._asked.resume
        if not self._start.again:
            return asked or False
        return ResumeOptions() if asked is None or self._start.further else asked

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
            run.trainer.request_stop(signal_name(self._board.stop))
