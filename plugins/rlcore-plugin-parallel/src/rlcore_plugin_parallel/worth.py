"""Whether worker processes are worth what they cost: found out before the first batch, by a few steps of the envs."""

from __future__ import annotations

import copy
import time
from typing import TYPE_CHECKING, Any, Final

import torch

from rlcore.collectors import BatchStorage, EnvStepper, remembering
from rlcore.envs import only_resets
from rlcore.process import usable_cores
from rlcore.types import Heart

if TYPE_CHECKING:
    from rlcore.types import Array, Context, Env, Step

_STEPS: Final = 6
# what a batch of workers takes longer than one in this process, apart from the steps: to wake, to tell, to wait
_COST: Final = 2e-3


def saved_seconds(context: Context, steps: int, num_workers: int) -> float:
    """Return by how much workers would shorten a batch, by what a step of the envs of this process takes now.

    Negative where they would make it longer. The envs are reset, and stepped a few times with the policy.

    Args:
        context: of the collector.
        steps: of each env in a batch.
        num_workers: how many there would be.
    """
    at_once = min(num_workers, usable_cores())
    return steps * _step_seconds(context) * (1 - 1 / at_once) - _COST


def _step_seconds(context: Context) -> float:
    """Return the least that a step of all envs took."""
    spec, policy = context.env_spec, context.model.policy
    timed: Any = _Timed(context.env)
    memory = remembering(policy, spec, context.device)
    stepper = EnvStepper(timed, copy.deepcopy(context.transforms), spec, Heart(), memory=memory)
    storage = BatchStorage.allocated(_STEPS, spec.num_envs, spec.observation_space, only_resets(spec))
    policy.refresh()
    stepper.begin(0, 0)
    with torch.inference_mode():
        noise = policy.draw(_STEPS, spec.num_envs, torch.Generator(context.device))
        stepper.collect(storage, memory or policy, noise, 0)
    return float(min(timed.seconds))


class _Timed:
    """An env that notes how long its steps take."""

    def __init__(self, env: Env) -> None:
        self.spec = env.spec
        self.reset = env.reset
        self.close = env.close
        self.seconds: list[float] = []
        self._env = env

    def step(self, action: Array) -> Step:
        began = time.perf_counter()
        step = self._env.step(action)
        self.seconds.append(time.perf_counter() - began)
        return step
