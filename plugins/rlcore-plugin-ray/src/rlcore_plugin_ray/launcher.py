"""The launcher `ray`: ranks as actors of Ray, on whichever of its nodes there is room."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import Field
from rlcore_plugin_ddp.joining import best
from rlcore_plugin_ddp.launchers import PlacingLauncher, RankEnd
from rlcore_plugin_ddp.memory import Memory

from rlcore.errors import ConfigError
from rlcore.types import FREE_AT_RESUME
from rlcore_plugin_ray.mailbox import StoreMailbox, serve_store
from rlcore_plugin_ray.meeting import Meeting, identity_of
from rlcore_plugin_ray.placing import arrived, kill
from rlcore_plugin_ray.session import LOOPBACK, PlacementConfig, Session, imported, in_short

if TYPE_CHECKING:
    from rlcore_plugin_ddp.launchers import Mailbox, RankProgram

    from rlcore.types import Context, Group
    from rlcore_plugin_ray.actor import Arrival

log = logging.getLogger(__name__)

_SECTION: Final = "[ranks] use"
# seconds that the store may take to answer this process
_ANSWER: Final = 10.0


class RayRanks(PlacingLauncher):
    """Starts each rank as an actor of Ray, which is never restarted by Ray itself.

    The ranks are connected by shared memory where all of them are on the host of the command, else by gloo. They tell
    how they are through a store of torch.distributed that this process serves.
    """

    class Config(PlacementConfig):
        """Which Ray it is, and what each rank takes of it."""

        group: Literal["auto", "gloo"] = Field(
            "auto",
            description="auto: shared memory where all ranks are on the host of the command, else gloo",
            json_schema_extra=FREE_AT_RESUME,
        )

    def __init__(self, config: Config, context: Context) -> None:
        imported(_SECTION)
        self._config = config
        self._session: Session | None = None
        self._memory: Memory | None = None
        self._store: Any = None
        self._meeting: Meeting | None = None
        self._actors: list[Any] = []
        self._arrivals: list[Arrival] = []
        self._running: dict[Any, int] = {}  # rank by what Ray knows its work by

    def connect(self, count: int) -> None:
        """Start Ray, or connect to the one that runs.

        Raises:
            ConfigError: there is none, or it has no room for so many.
        """
        self._session = Session(self._config, count, _SECTION)

    def open(self, count: int, generation: int, deadline: float) -> None:
        """Make what the ranks of a generation meet in, and let go of that of the one before."""
        if self._memory is not None:
            os.close(self._memory.fd)
        shares = best() == "shared" and self._config.group == "auto"
        self._memory = Memory.create(count, generation) if shares else None
        address = LOOPBACK if self._session is None else self._session.address
        self._store = serve_store(address, _ANSWER)
        fd = -1 if self._memory is None else self._memory.fd
        memory = "" if self._memory is None else identity_of(fd)
        self._meeting = Meeting(
            count, generation, deadline, os.getpid(), fd, memory, address, self._store.port, shares, address
        )

    def join(self, rank: int) -> Group:
        """Return the group of a rank that is forked from this process; those of Ray join by what they were sent."""
        return self._opened.join(rank)

    def place(self, waiting: Callable[[], None]) -> Mailbox:
        """Start an actor for each rank, and return this end of their mailbox.

        Raises:
            ConfigError: Ray finds no room for them, or something else is installed where they are.
        """
        session, meeting = self._connected, self._opened
        from rlcore_plugin_ray.actor import RankActor

        remote = session.ray.remote(RankActor)
        here = session.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            session.ray.get_runtime_context().get_node_id(), soft=True
        )
        self._actors = []
        for rank in range(meeting.size):
            # the first one writes the run folder, which this host has
            strategy = here if not rank else "DEFAULT"
            self._actors.append(remote.options(scheduling_strategy=strategy, **self._config.options()).remote())
        try:
            references = [actor.arrive.remote(meeting) for actor in self._actors]
            self._arrivals = arrived(session.ray, references, self._config.wait, _SECTION, "rank", waiting)
        except ConfigError:
            self.kill()
            raise
        return StoreMailbox(self._store)

    def begin(self, program: RankProgram) -> None:
        """Let the actors do what ranks do."""
        shared = all(arrival.reaches_memory for arrival in self._arrivals)
        for rank, (actor, arrival) in enumerate(zip(self._actors, self._arrivals, strict=True)):
            meeting = self._opened.at(arrival.address, shared)
            self._running[actor.run.remote(rank, meeting, program)] = rank

    def ended(self) -> Sequence[RankEnd]:
        """Return the ranks that have ended since the last call."""
        if not self._running:
            return ()
        waiting = list(self._running)
        done, _ = self._connected.ray.wait(waiting, num_returns=len(waiting), timeout=0)
        return [self._end(self._running.pop(reference), reference) for reference in done]

    def kill(self) -> None:
        """End every actor at once."""
        kill(self._connected.ray, self._actors, self._arrivals)

    def close(self) -> None:
        """Leave Ray, or stop the one that was started here."""
        if self._session is not None:
            self.kill()
            self._session.close()

    @property
    def _connected(self) -> Session:
        assert self._session is not None, "connect comes first"
        return self._session

    @property
    def _opened(self) -> Meeting:
        assert self._meeting is not None, "open comes first"
        return self._meeting

    def _end(self, rank: int, reference: Any) -> RankEnd:
        ray = self._connected.ray
        try:
            return RankEnd(rank, int(ray.get(reference)))
        except ray.exceptions.RayActorError as error:
            return RankEnd(rank, -signal.SIGKILL, f"is gone with its actor of Ray: {in_short(error)}")
        except ray.exceptions.RayError as error:
            return RankEnd(rank, 1, f"ended with an error of Ray: {in_short(error)}")
