"""Envs in worker processes, seen as vector envs that step in this one."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rlcore.errors import EnvError, RlcoreError, StorageError
from rlcore.types import Env, Step
from rlcore_plugin_parallel import memory
from rlcore_plugin_parallel.bundle import Bundle
from rlcore_plugin_parallel.env_server import FURTHER, EnvTask, step_fields
from rlcore_plugin_parallel.journal import EVERY, SHARE
from rlcore_plugin_parallel.pool import Pool
from rlcore_plugin_parallel.process import TICK, WorkerLostError

if TYPE_CHECKING:
    from rlcore.types import Array, Context


class EnvProcesses:
    """The worker processes of all envs of a run, which only step.

    Args:
        context: of the collector; its envs are closed here when the workers start.
        shares: the envs of each worker.
        start_method: of `multiprocessing`.
        timeout: seconds without a step after which a worker is taken to hang.
        restarts: how many workers may be replaced.

    Attributes:
        arrays: the actions and the steps of all envs, in shared memory; there once the workers have started.
    """

    def __init__(
        self, context: Context, shares: Sequence[slice], start_method: str, timeout: float, restarts: int
    ) -> None:
        self.arrays: dict[str, Array] = {}
        self.shares = shares
        self.timeout = timeout
        self.restarts = restarts
        self.heart = context.heart
        self._context = context
        self._start_method = start_method
        self._pool: Pool | None = None
        # what each worker began with, None where it cannot begin again, and its actions since then
        self._bases: list[tuple[Any, ...] | None] = [None] * len(shares)
        self._actions: list[list[Array]] = [[] for _ in shares]

    @property
    def replaced(self) -> int:
        """How many workers were replaced."""
        return 0 if self._pool is None else self._pool.replaced

    def pool(self) -> Pool:
        """Return the workers, which are started at the first call."""
        if self._pool is None:
            self._pool = self._start()
            self._context.env.close()
        return self._pool

    def begin(self, workers: slice, bases: Sequence[tuple[Any, ...] | None]) -> None:
        """Note with what these workers begin; None for one whose successor could not."""
        self._bases[workers] = bases
        for actions in self._actions[workers]:
            actions.clear()

    def stepped(self, index: int) -> None:
        """Note that a worker has stepped with the actions that it was given."""
        if self._bases[index] is not None:
            self._actions[index].append(self.arrays["action"][self.shares[index]].copy())

    def replace(self, index: int, lost: WorkerLostError) -> None:
        """Let another process take the step that one did not finish.

        Raises:
            EnvError: its envs cannot get to where they were.
        """
        if self._bases[index] is None:
            why = "as their state cannot be saved" if self.restarts else "as [collector] restarts = 0"
            raise EnvError(f"{lost.error}; its envs cannot go on in another process, {why}") from None
        self.pool().replace(lost)

    def close(self) -> None:
        """End every worker, who closes its envs."""
        if self._pool is not None:
            self._pool.close()

    def _recovery(self, index: int) -> Sequence[tuple[Any, ...]]:
        base = self._bases[index]
        return () if base is None else (base, ("replay", self._actions[index]))

    def _start(self) -> Pool:
        context, shares = self._context, self.shares
        processes = multiprocessing.get_context(self._start_method)
        block = memory.Block(processes, step_fields(context.env.spec))
        self.arrays = {str(name): tensor.numpy() for name, tensor in block.tensors().items()}
        counters = memory.Counters(processes, len(shares))
        packed = Bundle(context.make_env_for, context.env.spec, [], None, context.plugin_files).pack()
        folder, first = context.run.folder, context.first_env
        tasks = [
            EnvTask(
                index=index,
                envs=share,
                first_env=first,
                seed=context.seed(f"worker {index} from {first}" if first else f"worker {index}") % 2**63,
                packed=packed,
                counters=counters,
                stacks=None if folder is None else str(folder / f"stacks-worker-{index}.txt"),
                block=block,
            )
            for index, share in enumerate(shares)
        ]
        return Pool(self._start_method, tasks, counters, self.heart, self.timeout, self.restarts, self._recovery)


class EnvPart(Env):
    """The envs of some of the workers, as a vector env. They step when they are told, and others may act meanwhile.

    A worker that ends or hangs is replaced where the envs can be saved: its successor takes a state that was kept, and
    steps the envs with the actions since then.

    Args:
        processes: of all envs.
        spec: of all of them, without transforms.
        workers: those of this part.
    """

    def __init__(self, processes: EnvProcesses, spec: Any, workers: slice) -> None:
        shares = processes.shares[workers]
        self.share = slice(shares[0].start, shares[-1].stop)
        self.spec = replace(spec, num_envs=self.share.stop - self.share.start)
        self._processes = processes
        self._workers = workers
        self._indices = range(workers.start, workers.stop)
        self._due = 0.0
        self._saves = False
        self._tried_out = False

    def reset(self, seed: int | None = None) -> Array:
        """Reset every env, env `i` of the run with `seed + i`; `seed` is that of the first one here."""
        message = ("reset", None if seed is None else seed - self.share.start)
        self._ask(*message)
        self._begin([message] * len(self._indices))
        return np.array(self._processes.arrays["observation"][self.share])

    def step(self, action: Array) -> Step:
        """Step every env."""
        self.begin_step(action)
        return self.finish_step(action)

    def begin_step(self, action: Array) -> None:
        """Let every env step; `finish_step` waits for them."""
        if self._saves and time.monotonic() >= self._due:
            self._keep()
        self._processes.arrays["action"][self.share] = action
        workers = self._processes.pool().workers
        for index in self._indices:
            workers[index].task.wake()

    def finish_step(self, action: Array) -> Step:
        """Return the step that every env has taken; its arrays are those of the next one too.

        Raises:
            EnvError: a worker failed; or it ended, or hangs, and none can take its place.
        """
        finals: dict[int, Array] = {}
        infos: dict[int, Mapping[str, Any]] = {}
        try:
            for index in self._indices:
                first = self._processes.shares[index].start - self.share.start
                own_finals, own_infos = self._stepped(index)
                finals |= {first + place: final for place, final in own_finals.items()}
                infos |= {first + place: info for place, info in own_infos.items()}
        except RlcoreError:
            self._processes.pool().kill()
            raise
        arrays = self._processes.arrays
        observation, reward, terminated, truncated = (
            arrays[name][self.share] for name in ("observation", "reward", "terminated", "truncated")
        )
        return Step(observation, reward, terminated, truncated, finals, infos)

    def inexact(self) -> str | None:
        """Return why the state of the envs cannot be saved, or None."""
        answers = self._ask("inexact", slow=not self._tried_out)
        self._tried_out = True
        return next((reason for reason in answers if reason), None)

    def unrestored(self) -> str | None:
        """Return what the last `load_state_dict` could not bring back, or None."""
        return next((reason for reason in self._ask("unrestored") if reason), None)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of every env, by worker."""
        return {"workers": self._ask("state")}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the state of every env.

        Raises:
            StorageError: it is of another number of workers.
        """
        there, here = len(state["workers"]), len(self._indices)
        if there != here:
            raise StorageError(
                f"[collector] num_workers: the envs are in {here} workers here, {there} in the checkpoint"
            )
        self._ask("load", each=state["workers"], slow=True)
        self._begin([("load", saved) for saved in state["workers"]])

    def close(self) -> None:
        """End every worker, also those of other parts."""
        self._processes.close()

    def _ask(self, *message: Any, each: Sequence[Any] | None = None, slow: bool = False) -> list[Any]:
        return self._processes.pool().ask(*message, each=each, slow=slow, only=self._workers)

    def _begin(self, bases: Sequence[tuple[Any, ...]]) -> None:
        self._saves = bool(self._processes.restarts) and self.inexact() is None
        self._processes.begin(self._workers, bases if self._saves else [None] * len(bases))
        self._due = time.monotonic() + EVERY

    def _keep(self) -> None:
        """Keep the states of the envs, where they can be saved now; that takes one percent of the time."""
        began = time.monotonic()
        if self.inexact() is None:
            self._processes.begin(self._workers, [("load", state) for state in self._ask("state")])
        ended = time.monotonic()
        self._due = ended + max(EVERY, SHARE * (ended - began))

    def _stepped(self, index: int) -> tuple[Mapping[int, Any], Mapping[int, Any]]:
        """Return the last observations and the infos of the step of a worker; it is replaced if need be."""
        processes = self._processes
        while True:
            worker = processes.pool().workers[index]
            try:
                self._wait_for(worker)
                has_further = processes.arrays[FURTHER][processes.shares[index].start]
                finals, infos = worker.message("further") if has_further else ({}, {})
                break
            except WorkerLostError as lost:
                processes.replace(index, lost)
                worker.task.wake()
        processes.stepped(index)
        return finals, infos

    def _wait_for(self, worker: Any) -> None:
        """Wait until a worker has stepped."""
        worker.stillness.seconds = 0.0
        while not worker.task.done.acquire(True, TICK):
            if worker.pipe.poll() or not worker.process.is_alive():
                worker.message("further")  # which is its error, or its end
            self._processes.heart.beats += 1
            worker.watch(worker.task.counters.beats(worker.index), self._processes.timeout)
