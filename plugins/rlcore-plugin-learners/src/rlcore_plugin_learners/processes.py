"""Learners in processes of their own: started, given orders, and healed from the state that was kept.

All get the same orders in the same order, and every one of them answers. When one dies or stands still, all are ended
and started again from the state after the last order that was answered; the orders since then are given again.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from operator import methodcaller
from typing import Any, Final

import torch
import torch._dynamo  # the first optimizer imports it, which takes longer than all else: once, before the forks
from rlcore_plugin_ddp.memory import Memory

from rlcore.errors import NotSupportedError, RankLost
from rlcore.process import Stillness, how_it_ended
from rlcore_plugin_learners.config import AlgorithmConfig
from rlcore_plugin_learners.multi import MultiRLModuleSpec
from rlcore_plugin_learners.serving import Handed, Order, Place, Reply, main

log = logging.getLogger(__name__)

# seconds between two looks at whether learners move, and that one has to end
_LOOK: Final = 0.2
_PATIENCE: Final = 5.0


@dataclass
class Pending:
    """An order that was given and not answered by all.

    Attributes:
        orders: one for each learner.
        replies: by rank.
        kind: what the asker knows it by.
    """

    orders: Sequence[Order]
    kind: str
    replies: dict[int, Reply] = field(default_factory=dict)


class LearnerProcesses:
    """The processes of a group of learners.

    Args:
        config: of the learners.
        spec: of their modules.
        deadline: seconds that a learner is waited for without a sign of life.
        restarts: how often in a row they may die without an order done in between.

    Attributes:
        deaths: how often all were started again because one was lost.
        state: after the last order that all answered.
    """

    def __init__(
        self, config: AlgorithmConfig, spec: MultiRLModuleSpec, deadline: float = 60.0, restarts: int = 3
    ) -> None:
        if config.num_gpus_per_learner:
            raise NotSupportedError("num_gpus_per_learner: learners in processes of their own are on the CPU; use 0")
        self.size = config.num_learners
        self.deaths = 0
        self.state: dict[str, Any] = {}
        self._config = config
        self._spec = spec
        self._deadline = deadline
        self._restarts = restarts
        self._in_a_row = 0
        self._generation = 0
        self._structure: list[Order] = []
        self._processes: list[BaseProcess] = []
        self._pipes: list[Connection] = []
        self._memory: Memory | None = None
        self._pending: deque[Pending] = deque()
        self._stillness: list[Stillness] = []
        try:
            self._start()
        except (EOFError, OSError) as error:
            self._heal(self._why(error))

    def __len__(self) -> int:
        """Return how many of them live."""
        return sum(process.is_alive() for process in self._processes)

    @property
    def runs(self) -> bool:
        """Whether they were not ended."""
        return bool(self._processes)

    @property
    def waiting(self) -> int:
        """How many orders are not answered by all."""
        return len(self._pending)

    def give(self, orders: Sequence[Order], kind: str) -> None:
        """Give an order to each learner, and go on."""
        self._pending.append(Pending(orders, kind))
        try:
            self._send(orders)
        except OSError:  # a learner is gone, which is found when answers are taken
            log.debug("a learner did not take an order")

    def give_structure(self, order: Order) -> None:
        """Remember an order that changes which modules there are: learners that are started again do it first."""
        self._structure.append(order)

    def take(self, block: bool) -> tuple[str, list[Reply]] | None:
        """Return the answers to the order that was given first; None where none is complete and nobody waits.

        Raises:
            RankLost: learners were lost too often in a row.
        """
        while self._pending:
            pending = self._pending[0]
            try:
                if len(pending.replies) < self.size and not self._receive(pending, block):
                    return None
                if len(pending.replies) == self.size:
                    return self._done(pending)
            except (EOFError, OSError) as error:
                self._heal(self._why(error))
        return None

    def close(self) -> None:
        """End the processes and give back their memory; may be called again."""
        self._end()
        self._pending.clear()

    def _end(self) -> None:
        for process in self._processes:
            if process.pid is not None and process.is_alive():
                with suppress(ProcessLookupError):  # it may end by itself between the look and the signal
                    os.kill(process.pid, signal.SIGKILL)
        for process in self._processes:
            process.join(_PATIENCE)
        for pipe in self._pipes:
            pipe.close()
        if self._memory is not None:
            os.close(self._memory.fd)
        self._processes, self._pipes, self._memory = [], [], None

    def _done(self, pending: Pending) -> tuple[str, list[Reply]]:
        """Return the replies to an order that is over; learners that could not end it together begin again."""
        replies = [pending.replies[rank] for rank in range(self.size)]
        errors = [reply.error for reply in replies if reply.error is not None]
        if errors and all(isinstance(error, RankLost) for error in errors):
            raise OSError(str(errors[0]))
        self._pending.popleft()
        self._in_a_row = 0
        if replies[0].state is not None:
            self.state = replies[0].state
        elif errors and pending.orders[0].together and self.size > 1:
            self._begin_again()
        return pending.kind, replies

    def _receive(self, pending: Pending, block: bool) -> bool:
        """Take what has come, and return whether something had, or may come.

        Raises:
            OSError: a learner is lost.
            EOFError: likewise.
        """
        missing = [rank for rank in range(self.size) if rank not in pending.replies]
        ready = wait([self._pipes[rank] for rank in missing], _LOOK if block else 0)
        for rank in missing:
            if self._pipes[rank] in ready:
                pending.replies[rank] = self._pipes[rank].recv()
        if ready:
            return True
        lost = next((reply.error for reply in pending.replies.values() if isinstance(reply.error, RankLost)), None)
        if lost is not None and not self._failed(pending):
            raise OSError(str(lost))
        self._look(missing)
        return block

    def _failed(self, pending: Pending) -> bool:
        """Return whether a learner has an error of its own, for which the others wait no longer."""
        return any(r.error is not None and not isinstance(r.error, RankLost) for r in pending.replies.values())

    def _look(self, missing: Sequence[int]) -> None:
        """Find learners that stand still."""
        assert self._memory is not None
        for rank in missing:
            if self._stillness[rank].look(self._memory.mark(rank)) > self._deadline:
                raise OSError(f"learner {rank} did not move for {self._deadline:g} s")

    def _why(self, error: EOFError | OSError) -> str:
        """Return why the learners begin again: what was found, or how the process of one ended."""
        if isinstance(error, OSError) and error.errno is None:
            return str(error)
        ended = wait([process.sentinel for process in self._processes], _PATIENCE)
        for process in self._processes:
            if process.sentinel in ended:
                process.join(_PATIENCE)  # it closes its pipe before it is gone
        codes = enumerate(process.exitcode for process in self._processes)
        told = (f"learner {rank} {how_it_ended(code)}" for rank, code in codes if code is not None)
        return next(told, "a learner closed its pipe")

    def _send(self, orders: Sequence[Order]) -> None:
        for pipe, order in zip(self._pipes, orders, strict=True):
            pipe.send(order)

    def _heal(self, why: str) -> None:
        """Start all learners again, from the state that was kept, with the orders that were not answered.

        Raises:
            RankLost: too often in a row.
        """
        while True:
            self._in_a_row += 1
            self.deaths += 1
            if self._in_a_row > self._restarts:
                undone = len(self._pending)
                self.close()
                raise RankLost(
                    f"learners were lost {self._in_a_row} times in a row ({why}); {undone} orders are undone, and the "
                    "group is shut down. get_state and save_to_path have the state before them; build another group"
                )
            log.warning("a learner was lost (%s): all begin again, from the state that was kept", why)
            try:
                self._begin_again()
                return
            except (EOFError, OSError) as error:
                why = self._why(error)

    def _begin_again(self) -> None:
        self._end()
        self._start()
        for entry in self._pending:
            entry.replies.clear()
            self._send(entry.orders)

    def _start(self) -> None:
        self._generation += 1
        method = "fork" if _may_fork(self._config) else "forkserver"
        context: Any = multiprocessing.get_context(method)
        if method == "forkserver":  # a process that has imported torch once, for all learners and their successors
            context.set_forkserver_preload([main.__module__])
        self._memory = Memory.create(self.size, self._generation)
        threads = self._config.num_cpus_per_learner
        for rank in range(self.size):
            here, there = context.Pipe()
            place = Place(
                Handed(self._memory.fd),
                self.size,
                self._generation,
                rank,
                self._deadline,
                1 if threads == "auto" else max(1, int(threads)),
            )
            forked = [*self._pipes, here] if method == "fork" else []
            process = context.Process(
                target=main, args=(place, self._config, self._spec, there, forked), daemon=True, name=f"learner {rank}"
            )
            process.start()
            there.close()
            self._processes.append(process)
            self._pipes.append(here)
        self._stillness = [Stillness(2 * _LOOK) for _ in range(self.size)]
        self._set_up()

    def _set_up(self) -> None:
        """Wait until all are built, and give them the state that was kept."""
        kept = self.state
        self._expect()
        for order in [*self._structure, *([Order(methodcaller("set_state", kept))] if kept else [])]:
            self._send([order] * self.size)
            self._expect()

    def _expect(self) -> None:
        """Take one answer of each, and raise what one of them raises."""
        expected = Pending((), "")
        while len(expected.replies) < self.size:
            self._receive(expected, block=True)
        errors = [reply.error for reply in expected.replies.values() if reply.error is not None]
        if errors:
            self.close()
            raise errors[0]
        self.state = expected.replies[0].state or self.state


def _may_fork(config: AlgorithmConfig) -> bool:
    """Return whether a fork is safe: nothing else runs here, and each learner has one thread of torch."""
    alone = threading.active_count() == 1 and not torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return alone and config.num_cpus_per_learner in ("auto", 0, 1)
