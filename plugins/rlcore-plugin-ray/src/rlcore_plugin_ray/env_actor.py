"""The actor in which a share of the envs steps, with a copy of the transforms and of the model."""

from __future__ import annotations

import multiprocessing
import os
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from rlcore_plugin_parallel.memory import Block, Counters, Field, Stopped
from rlcore_plugin_parallel.worker import Assignment, Worker
from torch import Tensor

from rlcore import RlcoreError
from rlcore.errors import describe
from rlcore.state import seed_all
from rlcore.types import Key

if TYPE_CHECKING:
    from rlcore_plugin_parallel.journal import Gathered

Answer = tuple[str, Any]


@dataclass(frozen=True)
class EnvTask:
    """What an actor is given; its memory is its own, and as large as that of the process of the learner.

    Attributes:
        index: number of the worker.
        envs: numbers of its envs among those of the collector.
        first_env: number of the collector's first env among those of the run.
        seed: of the global generators of its process.
        packed: what it is made of.
        batches: how many batches can be under way.
        batch: the tensors of one, with those of all workers.
        weights: the tensors of the model.
        all_rows: whether the policy acts on the observations of all workers at once.
        keeps: whether it hands over its state from time to time, so that another actor can take its place.
    """

    index: int
    envs: slice
    first_env: int
    seed: int
    packed: bytes
    batches: int
    batch: Mapping[Key, Field]
    weights: Mapping[Key, Field]
    all_rows: bool
    keeps: bool

    def assignment(self) -> Assignment:
        """Return what a worker is given, with memory of this process."""
        context = multiprocessing.get_context("spawn")
        return Assignment(
            index=self.index,
            envs=self.envs,
            first_env=self.first_env,
            seed=self.seed,
            packed=self.packed,
            counters=Counters(context, self.index + 1),
            stacks=None,
            batches=[Block(context, self.batch) for _ in range(self.batches)],
            rows=self.envs,
            weights=[Block(context, self.weights)],
            all_rows=self.all_rows,
            keeps=self.keeps,
        )


class EnvActor:
    """A worker of Ray: does what it is told, one thing after another, and says meanwhile that it steps."""

    def __init__(self) -> None:
        self._assignment: Assignment | None = None
        self._worker: Worker | None = None

    def start(self, task: EnvTask) -> Answer:
        """Make the envs."""
        torch.set_num_threads(1)
        seed_all(task.seed)
        self._assignment = assignment = task.assignment()
        self._batches = [block.tensors() for block in assignment.batches]
        self._weights = assignment.weights[0].tensors()

        def make() -> tuple[int, str]:
            self._worker = Worker(assignment)
            return os.getpid(), os.uname().nodename

        return _answer("up", make)

    def do(self, what: str, *arguments: Any) -> Answer:
        """Do something that a worker can do."""
        return _answer("answer", lambda: getattr(self._made, what)(*arguments))

    def collect(
        self, batch: int, frame: int, version: int, noise: Tensor, weights: Mapping[Any, Tensor] | None
    ) -> Answer:
        """Collect a batch; return what there is to say of it, and its tensors `[time, env, ...]` of the share.

        Args:
            batch: its number.
            frame: of the run at which it begins.
            version: of the weights.
            noise: of all envs.
            weights: of the model; None where they are those of the last batch.
        """

        def gather() -> tuple[Gathered, dict[Any, Tensor]]:
            assert self._assignment is not None
            tensors = self._batches[batch % len(self._batches)]
            tensors["policy", "noise"].copy_(noise)
            for name, value in (weights or {}).items():
                self._weights[name].copy_(value)
            said = self._made.collect(batch, frame, version)
            share = self._assignment.envs
            return said, {name: t[:, share].clone() for name, t in tensors.items() if name != ("policy", "noise")}

        return _answer("batch", gather)

    def beats(self) -> int:
        """Return what changes as long as the envs step; answered while they do."""
        return 0 if self._assignment is None else self._assignment.counters.beats(self._assignment.index)

    def stop(self) -> None:
        """End what goes on at the next step; answered while it does."""
        if self._assignment is not None:
            self._assignment.counters.stop()

    def close(self) -> None:
        """Close the envs."""
        if self._worker is not None:
            self._worker.close()

    @property
    def _made(self) -> Worker:
        assert self._worker is not None, "start comes first"
        return self._worker


def _answer(kind: str, function: Callable[[], Any]) -> Answer:
    """Return what a function returns, or what it raised, in words."""
    try:
        return kind, function()
    except Stopped:
        return kind, None
    except BaseException as error:
        name = type(error).__name__ if isinstance(error, RlcoreError) else "EnvError"
        message = str(error) if isinstance(error, RlcoreError) else describe(error)
        return "error", (name, message, traceback.format_exc())
