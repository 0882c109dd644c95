"""Learners of a group as actors of Ray, on whichever of its nodes there is room."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Collection, Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError
from rlcore_plugin_ddp.joining import best
from rlcore_plugin_ddp.memory import Memory
from rlcore_plugin_learners.crew import Crew, LostLearnerError, Order, Reply

from rlcore.errors import ConfigError, NotSupportedError
from rlcore_plugin_ray.mailbox import serve_store
from rlcore_plugin_ray.meeting import Meeting, beaten, identity_of
from rlcore_plugin_ray.placing import arrived, kill
from rlcore_plugin_ray.session import PlacementConfig, Session, imported, in_short

if TYPE_CHECKING:
    from rlcore_plugin_learners.config import AlgorithmConfig
    from rlcore_plugin_learners.multi import MultiRLModuleSpec

    from rlcore_plugin_ray.actor import Arrival

_SECTION: Final = "LearnerGroup"
# seconds in which Ray, and room in it, are waited for
WAIT: Final = 120.0
# seconds that the store may take to answer this process
_ANSWER: Final = 10.0


class ActorCrew(Crew):
    """Learners in actors, which are never restarted by Ray itself.

    They are connected by shared memory where all of them are on the host of the script, else by gloo.

    Args:
        config: of the learners.
        spec: of their modules.
        deadline: seconds that a learner is waited for without a sign of life.
        placement_group: of Ray, in whose bundles they are placed; None for wherever there is room.

    Raises:
        ConfigError: there is no Ray, or it has no room.
        NotSupportedError: the script is no node of Ray.
    """

    def __init__(
        self, config: AlgorithmConfig, spec: MultiRLModuleSpec, deadline: float, placement_group: Any = None
    ) -> None:
        super().__init__(config.num_learners)
        self._placement = _placement_of(config)
        if _is_client(imported(_SECTION)):
            raise NotSupportedError(
                f"{_SECTION}: the script is a client of Ray, which is no node; run it on a node of the cluster, with "
                "ray.init(address='auto')"
            )
        self._session = Session(self._placement, self.size, _SECTION)
        self._ray = self._session.ray
        self._config = config
        self._spec = spec
        self._deadline = deadline
        self._strategy = self._strategy_of(placement_group)
        self._actors: list[Any] = []
        self._arrivals: list[Arrival] = []
        self._answers: list[deque[Any]] = []
        self._memory: Memory | None = None
        self._meeting: Meeting | None = None
        self._store: Any = None

    def start(self, generation: int) -> None:
        """Start an actor for each, and let it build its learner."""
        if not self._ray.is_initialized():
            raise ConfigError(f"{_SECTION}: Ray was shut down; build another group")
        from rlcore_plugin_ray.learner_actor import LearnerActor

        meeting = self._open(generation)
        remote = self._ray.remote(LearnerActor).options(**self._strategy, **self._placement.options())
        self._actors = [remote.remote() for _ in range(self.size)]
        self._arrivals = arrived(
            self._ray,
            [actor.arrive.remote(meeting) for actor in self._actors],
            self._placement.wait,
            _SECTION,
            "learner",
        )
        self._meeting = meeting = self._connected(meeting)
        handed = [self._ray.put(part) for part in (self._config, self._spec)]
        self._answers = [
            deque([actor.build.remote(rank, meeting.at(arrival.address, meeting.shared), *handed)])
            for rank, (actor, arrival) in enumerate(zip(self._actors, self._arrivals, strict=True))
        ]

    def send(self, orders: Sequence[Order]) -> None:
        """Call each actor."""
        self._check_connected()
        for actor, answers, order in zip(self._actors, self._answers, orders, strict=True):
            answers.append(actor.answer.remote(order))

    def ready(self, ranks: Sequence[int], seconds: float) -> Collection[int]:
        """Return whose calls have ended."""
        self._check_connected()
        first = {self._answers[rank][0]: rank for rank in ranks}
        done, _ = self._ray.wait(list(first), num_returns=1, timeout=seconds)
        if done:
            done, _ = self._ray.wait(list(first), num_returns=len(first), timeout=0)
        return [first[reference] for reference in done]

    def receive(self, rank: int) -> Reply:
        """Take what a call returned."""
        try:
            reply: Reply = self._ray.get(self._answers[rank].popleft())
        except self._ray.exceptions.RayActorError as error:
            raise LostLearnerError(f"learner {rank} is gone with its actor of Ray: {in_short(error)}") from error
        except self._ray.exceptions.RayTaskError as error:
            raise ConfigError(f"{_SECTION}: learner {rank} does not do what it is told: {in_short(error)}") from error
        return reply

    def mark(self, rank: int) -> Hashable:
        """Return what it counts in the memory, or says in the store."""
        assert self._meeting is not None
        if self._memory is not None and self._meeting.shared:
            return self._memory.mark(rank)
        return beaten(self._store, rank)

    def living(self) -> int:
        """Return how many actors live."""
        return len(self._actors)

    def end(self) -> None:
        """Kill the actors, and close what they meet in."""
        if self._ray.is_initialized():
            kill(self._ray, self._actors, self._arrivals)
        if self._memory is not None:
            os.close(self._memory.fd)
        self._actors, self._arrivals, self._answers = [], [], []
        self._memory, self._meeting, self._store = None, None, None

    def close(self) -> None:
        """Kill the actors, and stop the Ray that was started for them."""
        self.end()
        self._session.close()

    def _open(self, generation: int) -> Meeting:
        """Return where the actors of a generation may meet in memory."""
        self._memory = Memory.create(self.size, generation) if best() == "shared" else None
        fd = -1 if self._memory is None else self._memory.fd
        memory = "" if self._memory is None else identity_of(fd)
        address = self._session.address
        return Meeting(
            self.size,
            generation,
            self._deadline,
            os.getpid(),
            fd,
            memory,
            address,
            0,
            self._memory is not None,
            address,
        )

    def _connected(self, meeting: Meeting) -> Meeting:
        """Return where they meet, now that it is known where they are."""
        if all(arrival.reaches_memory for arrival in self._arrivals):
            return meeting
        self._store = serve_store(self._session.address, _ANSWER)
        return replace(meeting, port=self._store.port, shared=False)

    def _check_connected(self) -> None:
        if not self._ray.is_initialized():
            raise LostLearnerError("Ray was shut down")

    def _strategy_of(self, placement_group: Any) -> dict[str, Any]:
        if placement_group is None:
            return {}
        strategies = self._ray.util.scheduling_strategies
        return {"scheduling_strategy": strategies.PlacementGroupSchedulingStrategy(placement_group=placement_group)}


def _placement_of(config: AlgorithmConfig) -> PlacementConfig:
    """Return what each actor takes, and which Ray it is, where the script is not connected to one."""
    gpus, cpus = config.num_gpus_per_learner, config.num_cpus_per_learner
    if cpus == "auto":
        cpus = 0 if gpus else 1
    resources = config.custom_resources_per_learner or {}
    if not {"CPU", "GPU"}.isdisjoint(resources):
        raise ConfigError(
            "custom_resources_per_learner: cores and GPUs are num_cpus_per_learner and num_gpus_per_learner"
        )
    address = os.environ.get("RAY_ADDRESS") or None
    try:
        return PlacementConfig(address=address, num_cpus=cpus, num_gpus=gpus, resources=dict(resources), wait=WAIT)
    except ValidationError as error:
        told = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise ConfigError(f"{_SECTION}: what each learner takes of Ray is refused: {told}") from None


def _is_client(ray: Any) -> bool:
    return ray.is_initialized() and bool(ray.util.client.ray.is_connected())
