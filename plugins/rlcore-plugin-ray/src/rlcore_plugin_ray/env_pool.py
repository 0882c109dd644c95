"""The actors of a collector, seen from the learner: talking to them, seeing that they end or hang, replacing them."""

from __future__ import annotations

import contextlib
import os
import signal
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from rlcore_plugin_parallel.memory import Counters
from rlcore_plugin_parallel.pool import Pool, Recovery
from rlcore_plugin_parallel.process import TICK, WorkerLostError, WorkerProcess
from rlcore_plugin_parallel.worker import Assignment, Task

from rlcore import EnvError, RlcoreError, errors
from rlcore.types import Heart
from rlcore_plugin_ray.env_actor import EnvActor, EnvTask
from rlcore_plugin_ray.session import PlacementConfig, Session, in_short

_SECTION: Final = "[collector] use"

# from a worker and a message to collect a batch to what its actor is called with
Inputs = Callable[["ActorWorker", tuple[Any, ...]], tuple[Any, ...]]
# takes the tensors of a batch of a worker
Outputs = Callable[["ActorWorker", Any], Any]


class ActorPool(Pool):
    """The actors of one collector.

    Args:
        placement: which Ray it is, and what each takes of it.
        tasks: one for each worker.
        counters: of the collector; those of the actors are asked for.
        heart: of the run, kept beating while workers are waited for.
        timeout: seconds without a step after which a worker is taken to hang.
        restarts: how many workers are replaced.
        recovery: from the number of a worker to the messages that bring its successor to where it was.
        inputs: gives a batch what it needs.
        outputs: takes what it has become.

    Raises:
        EnvError: a worker cannot make its envs, or finds no place.
        ConfigError: there is no such Ray, or it has no room.
    """

    def __init__(
        self,
        placement: PlacementConfig,
        tasks: Sequence[Assignment],
        counters: Counters,
        heart: Heart,
        timeout: float,
        restarts: int,
        recovery: Recovery,
        inputs: Inputs,
        outputs: Outputs,
    ) -> None:
        self._placement = placement
        self._inputs = inputs
        self._outputs = outputs
        self._session = Session(placement, len(tasks), _SECTION)
        ray = self._session.ray
        # a step is watched from a thread of its own, so envs are stepped in one that is not the first of the process
        watched = {name: ray.method(concurrency_group="watch")(getattr(EnvActor, name)) for name in ("beats", "stop")}
        self._remote = ray.remote(concurrency_groups={"watch": 1})(type("EnvActor", (EnvActor,), watched))
        try:
            super().__init__("spawn", tasks, counters, heart, timeout, restarts, recovery)
        except BaseException:
            self._session.close()
            raise

    def close(self) -> None:
        """End every worker, at its next step; one that does not is killed."""
        super().close()
        self._session.close()

    def _started(self, task: Task) -> WorkerProcess:
        def make() -> Any:
            return self._remote.options(**self._placement.options()).remote()

        assert isinstance(task, Assignment)
        return ActorWorker(self._session, make, task, self._inputs, self._outputs)

    def _ready(self, workers: Sequence[WorkerProcess]) -> Collection[int]:
        waited = {worker.answer: worker.index for worker in workers if isinstance(worker, ActorWorker)}
        done, _ = self._session.ray.wait(list(waited), num_returns=1, timeout=TICK)
        return [waited[reference] for reference in done]

    def _beats(self, worker: WorkerProcess) -> int:
        assert isinstance(worker, ActorWorker)
        return worker.beats()


class ActorWorker(WorkerProcess):
    """One worker, and who takes its place.

    Args:
        session: of Ray.
        make: starts an actor.
        task: what it is given.
        inputs: gives a batch what it needs.
        outputs: takes what it has become.

    Attributes:
        version: of the weights that the actor has.
    """

    def __init__(
        self, session: Session, make: Callable[[], Any], task: Assignment, inputs: Inputs, outputs: Outputs
    ) -> None:
        self._session = session
        self._make = make
        self._inputs = inputs
        self._outputs = outputs
        self._assignment = task
        super().__init__(None, task)

    def start(self) -> None:
        """Start an actor, which says "up" when its envs are made."""
        task = self._assignment
        self.version = -1
        self._place: tuple[int, str] | None = None
        self._seen = 0
        self._asked: Any = None
        self._actor = self._make()
        given = EnvTask(
            index=task.index,
            envs=task.envs,
            first_env=task.first_env,
            seed=task.seed,
            packed=task.packed,
            batches=len(task.batches),
            batch=task.batches[0].fields,
            weights=task.weights[0].fields,
            all_rows=task.all_rows,
            keeps=task.keeps,
        )
        self._answers: deque[Any] = deque([self._actor.start.remote(given)])

    @property
    def answer(self) -> Any:
        """What Ray knows the next answer by."""
        return self._answers[0]

    @property
    def pid(self) -> int:
        """The number of the process, on its own host."""
        assert self._place is not None
        return self._place[0]

    def send(self, message: tuple[Any, ...]) -> None:
        """Send a message, which it answers."""
        self.unanswered.append(message)
        what, *arguments = message
        if what == "collect":
            self._answers.append(self._actor.collect.remote(*self._inputs(self, message)))
        elif what == "close":
            self._actor.stop.remote()
            self._answers.append(self._actor.close.remote())
        else:
            self._answers.append(self._actor.do.remote(what, *arguments))

    def message(self, kind: str) -> Any:
        """Return the content of its next message.

        Raises:
            WorkerLostError: it ended.
            RlcoreError: what it raised, with its name and stack.
        """
        ray = self._session.ray
        try:
            what, content = ray.get(self._answers.popleft())
        except ray.exceptions.RayActorError as error:
            raise WorkerLostError(self, f"is gone with its actor of Ray: {in_short(error)}") from None
        if what == "error":
            name, message, stack = content
            raised: RlcoreError = getattr(errors, name, EnvError)(f"{self}: {message}")
            errors.note(raised, f"in the worker:\n{stack}")
            raise raised
        assert what == kind, f"{self} says {what}, not {kind}"
        if kind == "up":
            self._place = content
        elif self.unanswered:
            self.unanswered.popleft()
        return self._outputs(self, content) if kind == "batch" else content

    def beats(self) -> int:
        """Return what changes as long as it steps, as far as it has said."""
        ray = self._session.ray
        if self._asked is not None and ray.wait([self._asked], timeout=0)[0]:
            with contextlib.suppress(ray.exceptions.RayActorError):  # who waits for its answer hears of its end
                self._seen = ray.get(self._asked)
            self._asked = None
        if self._asked is None:
            self._asked = self._actor.beats.remote()
        return self._seen

    def watch(self, beats: int, limit: float) -> None:
        """Count a time in which nothing came.

        Raises:
            WorkerLostError: it took no step for `limit` seconds, or found no place.
        """
        try:
            super().watch(beats, limit)
        except WorkerLostError:
            if self._place is None:
                raise WorkerLostError(self, f"found no place in Ray within {limit:g} s; see `ray status`") from None
            raise

    def join(self, seconds: float) -> None:
        """Wait until it has answered everything, at most so long."""
        self._session.ray.wait(list(self._answers), num_returns=len(self._answers), timeout=seconds)

    def kill(self) -> None:
        """End the actor at once."""
        if not self._session.ray.is_initialized():
            return
        self._session.ray.kill(self._actor, no_restart=True)
        if self._place is not None and self._place[1] == os.uname().nodename:
            # one that was stopped does not hear Ray
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._place[0], signal.SIGKILL)

    def forget(self) -> None:
        """Let go of an actor that was killed."""
        self._answers.clear()
