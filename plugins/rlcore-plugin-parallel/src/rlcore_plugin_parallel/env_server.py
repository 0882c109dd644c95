"""A worker process that only steps: actions come and steps go through shared memory, at the turn of a semaphore."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import torch

from rlcore.envs import StepCheck, inexact_env, unrestored_env
from rlcore_plugin_parallel.bundle import Bundle
from rlcore_plugin_parallel.memory import Block, Field, fields_of
from rlcore_plugin_parallel.worker import Server, Task

if TYPE_CHECKING:
    from rlcore.types import Array, EnvSpec, Key

FURTHER: Final = "further"


def step_fields(spec: EnvSpec) -> dict[Key, Field]:
    """Return where the actions and the steps of the envs of a spec lie; `further` is whether more comes by the pipe."""
    arrays: dict[Key, tuple[Sequence[int], Any]] = {
        "action": ((spec.num_envs, *(spec.action_space.shape or ())), spec.action_space.dtype),
        "observation": ((spec.num_envs, *(spec.observation_space.shape or ())), spec.observation_space.dtype),
        "reward": ((spec.num_envs,), np.float64),
        "terminated": ((spec.num_envs,), np.bool_),
        "truncated": ((spec.num_envs,), np.bool_),
        FURTHER: ((spec.num_envs,), np.bool_),
    }
    return fields_of(
        {name: (shape, torch.from_numpy(np.empty(0, dtype)).dtype) for name, (shape, dtype) in arrays.items()}
    )


@dataclass(frozen=True)
class EnvTask(Task):
    """What a worker is given that only steps.

    Attributes:
        block: with the fields of `step_fields`, of all envs.
        turn: released when it is the worker's turn: to step, or to read a message.
        done: released by the worker when it has stepped.
    """

    block: Block
    turn: Any = None
    done: Any = None

    def prepared(self, context: BaseContext) -> Self:
        """Return the task with semaphores that no process before has held."""
        return replace(self, turn=context.Semaphore(0), done=context.Semaphore(0))

    def released(self) -> Self:
        """Return the task without its semaphores, which the system forgets with them."""
        return replace(self, turn=None, done=None)

    def wake(self) -> None:
        """Let the worker read a message."""
        self.turn.release()

    def server(self) -> Server:
        """Return what steps."""
        return EnvServer(self)


class EnvServer:
    """Steps the envs of a share."""

    def __init__(self, task: EnvTask) -> None:
        self._env = task.env(Bundle.unpack(task.packed))
        self._check = StepCheck(self._env.spec)
        self._task = task
        self._heart = task.counters.heart(task.index)
        self._arrays: dict[str, Array] = {
            str(name): tensor.numpy()[task.envs] for name, tensor in task.block.tensors().items()
        }

    def serve(self, pipe: Connection) -> None:
        """Step, or do what comes through the pipe, whenever it is its turn."""
        task, env, arrays = self._task, self._env, self._arrays
        while True:
            task.turn.acquire()
            self._heart.beats += 1
            if pipe.poll():
                what, *arguments = pipe.recv()
                if what == "close":
                    return
                pipe.send(("answer", getattr(self, what)(*arguments)))
                continue
            step = self._check(env.step(arrays["action"].copy()))
            arrays["observation"][:] = step.observation
            arrays["reward"][:] = step.reward
            arrays["terminated"][:] = step.terminated
            arrays["truncated"][:] = step.truncated
            further = bool(step.final_observation or step.infos)
            arrays[FURTHER][:] = further
            if further:
                finals = {index: np.array(final) for index, final in step.final_observation.items()}
                pipe.send(("further", (finals, dict(step.infos))))
            task.done.release()

    def reset(self, seed: int | None) -> None:
        """Reset every env; their observations lie in shared memory then."""
        env_seed = None if seed is None else seed + self._task.envs.start
        self._arrays["observation"][:] = self._check.observation(self._env.reset(seed=env_seed))

    def inexact(self) -> str | None:
        """Return why a resume begins new episodes, or None."""
        return inexact_env(self._env)

    def unrestored(self) -> str | None:
        """Return what the last `load` could not bring back of the envs, or None."""
        return unrestored_env(self._env)

    def state(self) -> Any:
        """Return the state of the envs."""
        return self._env.state_dict()  # type: ignore[attr-defined]

    def load(self, state: Any) -> None:
        """Go on from a state."""
        self._env.load_state_dict(state)  # type: ignore[attr-defined]

    def replay(self, actions: Sequence[Array]) -> None:
        """Step the envs with actions `[env, *action]`, one step after another, to where they were after them."""
        for action in actions:
            self._env.step(action)
            self._heart.beats += 1

    def close(self) -> None:
        """Close the envs."""
        self._env.close()
