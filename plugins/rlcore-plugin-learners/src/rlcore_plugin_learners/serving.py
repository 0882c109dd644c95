"""One learner of a group elsewhere, which does what it is told; in a process, by the pipe from the script."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.reduction import DupFd
from operator import methodcaller
from typing import Any, Final, NamedTuple

import torch
from rlcore_plugin_ddp.memory import Memory
from rlcore_plugin_ddp.shared import SharedGroup

from rlcore.errors import NumericalError, RlcoreError, describe
from rlcore.process import STOPPING, usable_cores
from rlcore.types import Group
from rlcore_plugin_learners.batches import ModuleBatch, Shard, writeable
from rlcore_plugin_learners.columns import COMPONENT_METRICS_LOGGER
from rlcore_plugin_learners.config import AlgorithmConfig
from rlcore_plugin_learners.crew import Order, Reply
from rlcore_plugin_learners.learner import Learner
from rlcore_plugin_learners.multi import MultiRLModuleSpec

# seconds between two signs of life
_BEAT: Final = 0.2


class Handed:
    """A file descriptor: a process that is forked has it, another one gets a copy of its own.

    Args:
        number: of the descriptor.
    """

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return _copied, (DupFd(self.number),)


def _copied(handed: Any) -> Handed:
    return Handed(handed.detach())


class Place(NamedTuple):
    """Where a learner is among the others.

    Attributes:
        memory: that they share.
        size: how many there are.
        generation: how often they were started.
        rank: number of this one.
        deadline: seconds that a learner is waited for without a sign of life.
        threads: of torch.
    """

    memory: Handed
    size: int
    generation: int
    rank: int
    deadline: float
    threads: int


class Server:
    """A learner that answers orders, and moves as long as its process does.

    Args:
        config: of the learners.
        spec: of their modules.
        group: of the learners.
        threads: of torch.
        move: called again and again.
    """

    def __init__(
        self,
        config: AlgorithmConfig,
        spec: MultiRLModuleSpec,
        group: Group,
        threads: int,
        move: Callable[[], None],
    ) -> None:
        torch.set_num_threads(threads)
        threading.Thread(target=_keep_moving, args=(move,), daemon=True).start()
        self._learner = config.learner_type()(config=config, module_spec=spec)
        self._learner.group = group

    def build(self) -> Reply:
        """Build the learner, before all orders."""
        return self.answer(Order(methodcaller("build")))

    def answer(self, order: Order) -> Reply:
        """Do what an order says."""
        rank = self._learner.group.rank
        result: Any = None
        error: Exception | None = None
        try:
            result = self._learner.apply(order.function, *order.arguments)
        except Exception as raised:
            error = _sendable(raised)
            if not isinstance(error, NumericalError):  # which all raise alike, after all steps that could be taken
                return Reply(error=error, rank=rank)
        # the state of all is that of the first, but for what each has logged
        part = COMPONENT_METRICS_LOGGER if rank else None
        state = self._learner.get_state(part) if order.changes else None
        return Reply(result, error, state, rank)


def main(
    place: Place, config: AlgorithmConfig, spec: MultiRLModuleSpec, pipe: Connection, others: list[Connection]
) -> None:
    """Serve until the pipe is closed, which the end of the script does too.

    Args:
        place: where this learner is.
        config: of the learners.
        spec: of their modules.
        pipe: orders and replies.
        others: ends of pipes that a fork left here and that are not of this process.
    """
    for number in STOPPING:  # Ctrl-C reaches all processes, and it is the script's to end them
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
    for other in others:
        other.close()
    try:
        memory = Memory(
            place.memory.number,
            place.size,
            place.generation,
            place.rank,
            place.deadline,
            spin=place.size <= usable_cores(),
        )
        group = SharedGroup(memory)
        server = Server(config, spec, group, place.threads, group.beat)
        reply = server.build()
        while True:
            pipe.send(reply)
            reply = server.answer(pipe.recv())
    except (EOFError, BrokenPipeError, ConnectionResetError):
        os._exit(0)


def _keep_moving(move: Callable[[], None]) -> None:
    while True:
        move()
        time.sleep(_BEAT)


def _sendable(error: Exception) -> Exception:
    """Return an error that a pipe takes, of the same kind where that is one of rlcore."""
    if isinstance(error, RlcoreError):
        error.__cause__ = error.__context__ = error.__traceback__ = None
        return error
    return RuntimeError(f"a learner raised {describe(error)}")


def update(
    learner: Learner,
    columns: dict[str, dict[str, Any]],
    timesteps: dict[str, int],
    settings: dict[str, Any],
    env_steps: int,
) -> dict[str, Any]:
    """Let a learner take its part of an update."""
    data = {module_id: _batch(several, learner.device) for module_id, several in columns.items()}
    return learner.update(training_data=Shard(data, steps=env_steps), timesteps=timesteps, **settings)


def _batch(columns: dict[str, Any], device: torch.device) -> ModuleBatch:
    return ModuleBatch({name: torch.from_numpy(writeable(column)).to(device) for name, column in columns.items()})
