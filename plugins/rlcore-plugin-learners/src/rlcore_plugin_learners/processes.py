"""Learners in processes of their own on this host, that are reached by pipes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Collection, Hashable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

import torch
import torch._dynamo  # the first optimizer imports it, which takes longer than all else: once, before the forks
from rlcore_plugin_ddp.memory import Memory

from rlcore.errors import NotSupportedError
from rlcore.process import how_it_ended
from rlcore_plugin_learners.config import AlgorithmConfig
from rlcore_plugin_learners.crew import PATIENCE, Crew, LostLearnerError, Order, Reply
from rlcore_plugin_learners.multi import MultiRLModuleSpec
from rlcore_plugin_learners.serving import Handed, Place, main


class ProcessCrew(Crew):
    """Learners in processes.

    Args:
        config: of the learners.
        spec: of their modules.
        deadline: seconds that a learner is waited for without a sign of life.

    Raises:
        NotSupportedError: the config asks for what only Ray has.
    """

    def __init__(self, config: AlgorithmConfig, spec: MultiRLModuleSpec, deadline: float) -> None:
        super().__init__(config.num_learners)
        for name in ("num_gpus_per_learner", "custom_resources_per_learner"):
            if getattr(config, name):
                raise NotSupportedError(
                    f"{name}: learners in processes are on the CPUs of this host; leave it out, or let them be actors "
                    "of Ray: learners(launcher='ray'), with rlcore-plugin-ray"
                )
        self._config = config
        self._spec = spec
        self._deadline = deadline
        self._processes: list[BaseProcess] = []
        self._pipes: list[Connection] = []
        self._memory: Memory | None = None

    def start(self, generation: int) -> None:
        """Start a process for each."""
        method = "fork" if _may_fork(self._config) else "forkserver"
        context: Any = multiprocessing.get_context(method)
        if method == "forkserver":  # a process that has imported torch once, for all learners and their successors
            context.set_forkserver_preload([main.__module__])
        self._memory = Memory.create(self.size, generation)
        threads = self._config.threads_per_learner
        for rank in range(self.size):
            here, there = context.Pipe()
            place = Place(Handed(self._memory.fd), self.size, generation, rank, self._deadline, threads)
            forked = [*self._pipes, here] if method == "fork" else []
            process = context.Process(
                target=main, args=(place, self._config, self._spec, there, forked), daemon=True, name=f"learner {rank}"
            )
            process.start()
            there.close()
            self._processes.append(process)
            self._pipes.append(here)

    def send(self, orders: Sequence[Order]) -> None:
        """Write an order to each pipe."""
        try:
            for pipe, order in zip(self._pipes, orders, strict=True):
                pipe.send(order)
        except OSError as error:
            raise LostLearnerError(self._why()) from error

    def ready(self, ranks: Sequence[int], seconds: float) -> Collection[int]:
        """Return whose pipes have something, which the end of a process is too."""
        found = wait([self._pipes[rank] for rank in ranks], seconds)
        return [rank for rank in ranks if self._pipes[rank] in found]

    def receive(self, rank: int) -> Reply:
        """Read from a pipe."""
        try:
            reply: Reply = self._pipes[rank].recv()
        except (EOFError, OSError) as error:
            raise LostLearnerError(self._why()) from error
        return reply

    def mark(self, rank: int) -> Hashable:
        """Return what it counts in the memory."""
        assert self._memory is not None
        return self._memory.mark(rank)

    def living(self) -> int:
        """Return how many processes live."""
        return sum(process.is_alive() for process in self._processes)

    def end(self) -> None:
        """Kill the processes, and close pipes and memory."""
        for process in self._processes:
            if process.pid is not None and process.is_alive():
                with suppress(ProcessLookupError):  # it may end by itself between the look and the signal
                    os.kill(process.pid, signal.SIGKILL)
        for process in self._processes:
            process.join(PATIENCE)
        for pipe in self._pipes:
            pipe.close()
        if self._memory is not None:
            os.close(self._memory.fd)
        self._processes, self._pipes, self._memory = [], [], None

    def _why(self) -> str:
        """Return how the process of one ended."""
        ended = wait([process.sentinel for process in self._processes], PATIENCE)
        for process in self._processes:
            if process.sentinel in ended:
                process.join(PATIENCE)  # it closes its pipe before it is gone
        codes = enumerate(process.exitcode for process in self._processes)
        told = (f"learner {rank} {how_it_ended(code)}" for rank, code in codes if code is not None)
        return next(told, "a learner closed its pipe")


def _may_fork(config: AlgorithmConfig) -> bool:
    """Return whether a fork is safe: nothing else runs here, and each learner has one thread of torch."""
    alone = threading.active_count() == 1 and not torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return alone and config.threads_per_learner == 1
