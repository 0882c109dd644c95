"""A rank that something else than rlcore started, and starts again with all others when one of them dies."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar

from rlcore import build
from rlcore.errors import ConfigError, Interruption, RankLost, RlcoreError
from rlcore.process import Watchdog, end_forks_with_this
from rlcore.run import Asked, Config, Ending, ResumeOptions, Run, claimed, command_hooks, train_as_asked
from rlcore.types import Launcher
from rlcore_plugin_ddp.launchers import RankPlace
from rlcore_plugin_ddp.ranks.launch import read_launch, write_launch
from rlcore_plugin_ddp.ranks.pulse import Pulse
from rlcore_plugin_ddp.ranks.same import check_all_can, check_same_config, check_same_folder
from rlcore_plugin_ddp.ranks.shares import divided
from rlcore_plugin_ddp.ranks.waiting import WaitingGroup

log = logging.getLogger(__name__)

Result = TypeVar("Result")

# how a generation of ranks begins
_NEW, _AS_SAID, _AGAIN = range(3)


class JoinedRank:
    """Trains its share of a run, from the beginning or from the latest checkpoint of this start of ranks.

    Args:
        place: where it stands among the ranks.
        config: of the whole run.
        asked: what the command asks.
        ending: of this process.

    Raises:
        ConfigError: there are more ranks than the config says, or fewer; or they cannot have equal shares.
    """

    def __init__(self, place: RankPlace, config: Config, asked: Asked, ending: Ending) -> None:
        assert config.ranks is not None
        if place.size != config.ranks.count:
            raise ConfigError(
                f"[ranks] count = {config.ranks.count}, and {place.size} ranks were started; make both the same, here "
                f"by --set ranks.count={place.size}"
            )
        divided(config, place.size)
        self._place = place
        self._config = config
        self._deadline = config.ranks.deadline
        self._asked = asked
        self._ending = ending
        self._group: WaitingGroup | None = None

    def train(self, launcher: Launcher) -> None:
        """Train to the end of the run.

        Raises:
            RankLost: another rank is gone, or does not move.
            RlcoreError: whatever ends a run.
        """
        end_forks_with_this()
        launcher.open(self._place.size, 1, self._deadline)
        try:
            self._group = WaitingGroup(launcher.join(self._place.rank))
            self._train(self._group)
        except RankLost as lost:
            self._say_lost(lost)
            raise
        except Interruption:
            # who started the ranks stops all when one is gone, perhaps before this one has waited for it
            self._say_lost(None if self._group is None else self._group.gone())
            raise

    def _train(self, group: WaitingGroup) -> None:
        ending = self._ending
        watchdog = Watchdog(ending.heart, self._config.run.hang_after, ending.folder, ending.last_resort)
        with Pulse(ending.heart, group).beating(), watchdog.watching():
            check_same_config(self._config, group)
            run = self._begin(group)
            run.trainer.saving.last_good = None  # it would be that of one rank
            ending.begin(run)
            train_as_asked(run, self._asked)

    def _say_lost(self, lost: RankLost | None) -> None:
        """Say which rank is lost, before anything else is done about it: this process may be killed at any time."""
        if lost is not None:
            log.error("error: rank %d: %s", self._place.rank, lost)

    def _begin(self, group: WaitingGroup) -> Run:
        """Build this rank's share in the folder of the run, which the first rank claims."""
        how = group.share((self._how(),))[0][0]
        resume = (None, self._asked.resume, ResumeOptions())[how]
        with self._claiming(group, how) as release:
            run = _together(group, lambda: self._built(group, resume))
            if self._place.local_size < self._place.size:
                _together(group, lambda: check_same_folder(self._ending.folder, group))
        run.trainer.parts.release = release
        if how == _AS_SAID and not self._place.rank:
            run.trainer.parts.begun = self._belongs_here_after(run.trainer.parts.begun)
        return run

    def _how(self) -> int:
        """Return how the ranks begin; whether the folder is of this start of ranks is for the first to see."""
        if not self._place.rank and read_launch(self._ending.folder) == self._place.launch:
            return _AGAIN
        return _NEW if self._asked.resume is None else _AS_SAID

    @contextmanager
    def _claiming(self, group: WaitingGroup, how: int) -> Iterator[Callable[[], None]]:
        """Claim the folder on the first rank, while others wait; yield what gives it free."""
        if self._place.rank:
            check_all_can(group)
            yield lambda: None
            return
        with ExitStack() as stack:
            claim = _together(group, lambda: stack.enter_context(claimed(self._asked.place, how != _NEW)))
            if how == _NEW:
                write_launch(self._ending.folder, self._place.launch)
            yield claim.release

    def _built(self, group: WaitingGroup, resume: ResumeOptions | None) -> Run:
        hooks = [] if self._place.rank else command_hooks(self._asked, self._config, self._ending.status)
        heart, place = self._ending.heart, self._asked.place
        run = build(self._config, resume=resume or False, hooks=hooks, heart=heart, place=place, group=group)
        if not self._place.rank:
            self._say_what_a_death_costs(run)
        return run

    def _say_what_a_death_costs(self, run: Run) -> None:
        assert run.trainer.parts.schedule is not None
        every, restarts = run.trainer.parts.schedule.every, self._place.restarts
        progress = run.trainer.parts.progress
        clock = every.clock or progress.clock
        if not restarts:
            log.info("when a rank dies the run ends, as ranks are not started again; it can be resumed")
            return
        log.info(
            "when a rank dies, all are started again, %d times at most, and go on from the latest checkpoint: up to "
            "%s %s ([checkpoint] every) are lost",
            restarts,
            f"{every.interval:,}",
            clock,
        )
        if clock == progress.clock and every.interval >= progress.total:
            log.warning("no checkpoint comes before the end, so a death loses everything; set [checkpoint] every")

    def _belongs_here_after(self, begun: Callable[[], None]) -> Callable[[], None]:
        """Return what is done once a resume has begun, what the command line says of it included."""

        def belong() -> None:
            begun()
            write_launch(self._ending.folder, self._place.launch)

        return belong


def _together(group: WaitingGroup, act: Callable[[], Result]) -> Result:
    """Do what every rank must be able to do, and see that all others are.

    Raises:
        OtherRankError: one is not.
        RlcoreError: this one is not.
    """
    try:
        done = act()
    except RankLost:
        raise
    except RlcoreError as error:
        check_all_can(group, error.exit_code)
        raise
    check_all_can(group)
    return done
