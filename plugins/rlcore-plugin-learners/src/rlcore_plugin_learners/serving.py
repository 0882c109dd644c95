"""A process that learns: one learner of a group, doing what the pipe from the script says."""

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

import cloudpickle
import torch
from rlcore_plugin_ddp.memory import Memory
from rlcore_plugin_ddp.shared import SharedGroup

from rlcore.errors import NumericalError, RlcoreError, describe
from rlcore.process import STOPPING, usable_cores
from rlcore_plugin_learners.batches import ModuleBatch, Shard
from rlcore_plugin_learners.config import AlgorithmConfig
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


class Order(NamedTuple):
    """What a learner is to do.

    Attributes:
        function: called with the learner and the arguments.
        arguments: of it.
        changes: whether the learner is another one afterwards, so that its state has to be kept again.
        together: whether learners wait for each other in it, so that none can go on where one failed.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    changes: bool = True
    together: bool = False


class Portable:
    """A function that goes through a pipe whatever it is, such as a lambda.

    Args:
        function: of a learner.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._content = cloudpickle.dumps(function)

    def __call__(self, *arguments: Any) -> Any:
        """Call the function."""
        return cloudpickle.loads(self._content)(*arguments)


class Reply(NamedTuple):
    """What a learner says to an order.

    Attributes:
        result: what the function returned.
        error: what it raised, or None.
        state: after a change, of the first learner.
    """

    result: Any = None
    error: BaseException | None = None
    state: dict[str, Any] | None = None


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
    torch.set_num_threads(place.threads)
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
        threading.Thread(target=_beat, args=(group,), daemon=True).start()
        learner = config.learner_type()(config=config, module_spec=spec)
        learner.group = group
        order = Order(methodcaller("build"))
        while True:
            reply = _answer(learner, order)
            if order.together and reply.error is not None and not isinstance(reply.error, NumericalError):
                memory.end()  # the others wait for this one
            pipe.send(reply)
            order = pipe.recv()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        os._exit(0)


def _beat(group: SharedGroup) -> None:
    while True:
        group.beat()
        time.sleep(_BEAT)


def _answer(learner: Learner, order: Order) -> Reply:
    result: Any = None
    error: Exception | None = None
    try:
        result = learner.apply(order.function, *order.arguments)
    except Exception as raised:
        error = _sendable(raised)
        if not isinstance(error, NumericalError):  # which all raise alike, after all steps that could be taken
            return Reply(error=error)
    state = learner.get_state() if order.changes and learner.group.rank == 0 else None
    return Reply(result, error, state)


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
    data = {
        module_id: ModuleBatch({name: torch.from_numpy(column) for name, column in several.items()})
        for module_id, several in columns.items()
    }
    return learner.update(training_data=Shard(data, steps=env_steps), timesteps=timesteps, **settings)
