"""A worker process: steps its share of the envs into shared memory, as it is told through a pipe."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

import torch

from rlcore import ConfigError, RlcoreError
from rlcore.collectors import Acting, EnvStepper, Remembering, remembering
from rlcore.envs import inexact_env, only_resets, unrestored_env
from rlcore.errors import describe
from rlcore.process import STOPPING, lenient
from rlcore.run import EnvMaker
from rlcore.state import seed_all
from rlcore.types import EnvSpec, Policy, Stateful, offers
from rlcore_plugin_parallel.all_rows import AllRows
from rlcore_plugin_parallel.bundle import Bundle
from rlcore_plugin_parallel.journal import Gathered, Keeping, Replayed
from rlcore_plugin_parallel.memory import Block, Counters, Stopped, batch_storage, copy_weights, weights_of

if TYPE_CHECKING:
    from rlcore.types import Array, Env

_PARENT_SECONDS: Final = 0.5


class Server(Protocol):
    """What a worker process does."""

    def serve(self, pipe: Connection) -> None:
        """Do what comes through the pipe, one thing after another, until it is told to end."""
        ...

    def close(self) -> None:
        """Close the envs."""
        ...


@dataclass(frozen=True)
class Task:
    """What every worker is given.

    Attributes:
        index: number of the worker.
        envs: numbers of its envs among those of the collector.
        first_env: number of the collector's first env among those of the run.
        seed: of the global generators of its process.
        packed: the `Bundle`.
        counters: where its steps are counted.
        stacks: file for the stacks of its threads, written at SIGURG; None for none.
    """

    index: int
    envs: slice
    first_env: int
    seed: int
    packed: bytes
    counters: Counters
    stacks: str | None

    def prepared(self, context: BaseContext) -> Self:
        """Return the task of a process that is about to start."""
        return self

    def released(self) -> Self:
        """Return the task of a process that is gone, without what belonged to it."""
        return self

    def wake(self) -> None:
        """Let the worker hear that a message came."""

    def server(self) -> Server:
        """Return what does it; called in the worker process."""
        raise NotImplementedError

    def env(self, bundle: Bundle) -> Env:
        """Return the envs of the share.

        Raises:
            ConfigError: they are not as many as they should be.
        """
        first, count = self.first_env + self.envs.start, self.envs.stop - self.envs.start
        heart = self.counters.heart(self.index)
        make_env = bundle.make_env.counted_on(heart) if isinstance(bundle.make_env, EnvMaker) else bundle.make_env
        env = make_env(f"from {first}" if first else "", first, num_envs=count)
        if env.spec.num_envs != count:
            raise ConfigError(
                f"[env] gave {env.spec.num_envs} envs to a worker in place of {count}; worker processes need an env "
                "whose key num_envs says how many there are"
            )
        return env


@dataclass(frozen=True)
class Assignment(Task):
    """What a worker is given that acts too.

    Attributes:
        batches: memory of the batches, in turn.
        rows: its envs among those of a batch.
        weights: memory of the weights, in turn.
        all_rows: whether the policy acts on the observations of all workers at once.
        keeps: whether it hands over its state from time to time, so that another process can take its place.
    """

    batches: list[Block]
    rows: slice
    weights: list[Block]
    all_rows: bool
    keeps: bool

    def server(self) -> Server:
        """Return what acts and steps."""
        return Worker(self)


def main(assignment: Task, pipe: Connection) -> None:
    """Run a worker until it is told to end, or the process of the learner is gone."""
    for number in STOPPING:  # Ctrl-C and a closed terminal reach all processes, and it is the learner's to end them
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
    sys.stdout, sys.stderr = lenient(sys.stdout), lenient(sys.stderr)  # what an env prints ends nothing
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    if assignment.stacks is not None:
        stream = open(assignment.stacks, "a")  # noqa: SIM115 - open as long as the process lives
        faulthandler.register(signal.SIGURG, stream, all_threads=True)
    torch.set_num_threads(1)
    seed_all(assignment.seed)
    worker = None
    try:
        worker = assignment.server()
        pipe.send(("up", None))
        worker.serve(pipe)
    except (Stopped, EOFError, BrokenPipeError):
        pass
    except BaseException as error:
        kind = type(error).__name__ if isinstance(error, RlcoreError) else "EnvError"
        message = str(error) if isinstance(error, RlcoreError) else describe(error)
        _send(pipe, ("error", (kind, message, traceback.format_exc())))
    finally:
        if worker is not None:
            worker.close()
    sys.stdout.flush()


class Worker:
    """The envs of a share, a copy of the transforms and of the model."""

    def __init__(self, assignment: Assignment) -> None:
        bundle = Bundle.unpack(assignment.packed)
        share = assignment.rows
        self._env = assignment.env(bundle)
        self._share = share
        self._transforms = bundle.transforms
        self._policy: Policy = bundle.model.policy
        self._weights = weights_of(bundle.model)
        self._all_rows = assignment.all_rows
        self._memory = self._memory_of(bundle.spec)
        self._acting: Acting = self._memory or self._policy
        heart = assignment.counters.heart(assignment.index)
        first = assignment.first_env + assignment.envs.start
        self._stepper = EnvStepper(self._env, bundle.transforms, bundle.spec, heart, first, self._memory)
        masked = only_resets(bundle.spec)
        batches = [block.tensors() for block in assignment.batches]
        self._noise = [tensors["policy", "noise"] for tensors in batches]
        whole = [batch_storage(tensors, masked, bundle.spec.observation_space) for tensors in batches]
        self._rows = [storage.rows for storage in whole]
        self._storages = [storage.share(share) for storage in whole]
        self._published = [block.tensors() for block in assignment.weights]
        self._version = -1
        self._keeping = Keeping() if assignment.keeps else None

    def serve(self, pipe: Connection) -> None:
        """Do what comes through the pipe, one thing after another."""
        waiting: deque[tuple[Any, ...]] = deque()
        while True:
            while not waiting or pipe.poll():  # all that came, as it says which weights are the latest
                waiting.append(pipe.recv())
            newest = max((message[-1] for message in waiting if message[0] == "collect"), default=-1)
            what, *arguments = waiting.popleft()
            if what == "close":
                return
            if what == "collect":
                batch, frame, _ = arguments
                pipe.send(("batch", self.collect(batch, frame, newest)))
            else:
                pipe.send(("answer", getattr(self, what)(*arguments)))

    def begin(self, seed: int, frame: int) -> None:
        """Begin an episode in every env."""
        self._stepper.begin(seed, frame)

    def inexact(self) -> str | None:
        """Return why a resume begins new episodes, or None."""
        return inexact_env(self._env)

    def unrestored(self) -> str | None:
        """Return what the last `load` could not bring back of the envs, or None."""
        return unrestored_env(self._env)

    def state(self) -> dict[str, Any]:
        """Return the running episodes, and what the transforms keep of them."""
        transforms = [t.state_dict() if offers(t, Stateful) else None for t in self._transforms]
        return {**self._stepper.state_dict(), "transforms": transforms}

    def load(self, state: dict[str, Any]) -> None:
        """Go on with the saved episodes."""
        for transform, saved in zip(self._transforms, state["transforms"], strict=True):
            if saved is not None and offers(transform, Stateful):
                transform.load_state_dict(saved)
        self._stepper.load_state_dict(state)

    def replay(self, actions: Sequence[Array], memory: Any) -> None:
        """Step the envs with the actions of batches, one after another, to where they were after them.

        Args:
            actions: of each batch, `[time, env, *action]`.
            memory: what the policy remembered then; None where it has no state.
        """
        storage, noise = self._storages[0], self._noise[0][:, self._share]
        with torch.inference_mode():
            for of_batch in actions:
                self._stepper.collect(storage, Replayed(of_batch), noise, 0)
        if self._memory is not None:
            self._memory.load_state_dict(memory)

    def close(self) -> None:
        """Close the envs."""
        self._env.close()

    def _memory_of(self, spec: EnvSpec) -> Remembering | None:
        """Return how a policy with a state acts, on the rows of all envs or of the share."""
        share, cpu = self._share, torch.device("cpu")
        if self._all_rows:
            return remembering(self._policy, spec, cpu, share)
        return remembering(self._policy, replace(spec, num_envs=share.stop - share.start), cpu)

    def collect(self, batch: int, frame: int, version: int) -> Gathered:
        """Fill a batch with weights of that version."""
        if version != self._version:
            copy_weights(self._published[version % len(self._published)], self._weights)
            self._version = version
        self._policy.refresh()
        place = batch % len(self._storages)
        acting = self._acting
        noise, rows = self._noise[place], self._rows[place]
        if self._all_rows:
            acting = AllRows(acting, self._share)
        else:
            noise, rows = noise[:, self._share], self._storages[place].rows
        with torch.inference_mode():
            finished = self._stepper.collect(self._storages[place], acting, noise, frame, rows)
        kept = None if self._keeping is None else self._keeping.state(self)
        memory = None if self._keeping is None or self._memory is None else self._memory.state_dict()
        return Gathered(self._version, finished, self._stepper.running, kept, memory)


def _end_with(parent: int) -> None:
    """End this process when the one that started it is gone, whatever an env is doing."""
    while os.getppid() == parent:
        time.sleep(_PARENT_SECONDS)
    os._exit(1)


def _send(pipe: Connection, message: Any) -> None:
    with contextlib.suppress(OSError):  # nobody may listen any more
        pipe.send(message)
