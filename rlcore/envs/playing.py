"""Plays complete episodes of the deterministic policy, with frozen transforms, for what measures or shows a policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from rlcore.envs.action_check import ActionCheck
from rlcore.envs.carrying import carried
from rlcore.envs.step_checks import env_error
from rlcore.envs.transformed import TransformedEnv, observation_dtype
from rlcore.errors import FROM_OUTSIDE
from rlcore.types import Env
from rlcore.types.context import Context

if TYPE_CHECKING:
    from rlcore.types import Array, BoolArray


def play(
    env: Env,
    context: Context,
    seed: int,
    look: Callable[[BoolArray, BoolArray], object] = lambda playing, over: None,
    episodes: int | None = None,
) -> tuple[Array, Array]:
    """Play one episode in each env, to its end.

    Args:
        env: used from a reset on; what it does after the end of an episode does not count.
        context: of whoever plays; has the model and the transforms.
        seed: env `i` is reset with `seed + i`.
        look: called after the reset and after each step with two masks `[env]`: which envs were in their episode, and
            of which that was the end.
        episodes: how many, where that is less than the number of envs.

    Returns:
        The undiscounted returns `[episode]`, float64, and the lengths in steps `[episode]`, int64.

    Raises:
        EnvError: an env raises, whatever it is, or returns something of another form than its spec says.
        PluginError: an action lies outside of the action space.
    """
    policy = context.model.policy
    policy.refresh()
    mode = carried(policy, env.spec.num_envs).mode
    seen_env = TransformedEnv(env, context.transforms)
    num_envs = env.spec.num_envs
    running = np.arange(num_envs) < (num_envs if episodes is None else episodes)
    count = int(running.sum())
    returns, lengths = np.zeros(num_envs), np.zeros(num_envs, dtype=np.int64)
    dtype = observation_dtype(seen_env.spec.observation_space)
    check = ActionCheck(seen_env.spec)
    observation = _guarded(seen_env, seen_env.reset, seed)
    look(running, ~running)
    with torch.inference_mode():
        while running.any():
            # a copy, which begins in memory where all tensors do: the bits of a product of matrices depend on it
            observations = torch.tensor(np.asarray(observation, dtype=dtype), device=context.device)
            action = mode(observations).cpu().numpy()
            check.add(action)
            step = _guarded(seen_env, seen_env.step, action)
            context.heart.beats += 1
            returns += step.reward * running
            lengths += running
            over = step.terminated | step.truncated
            look(running, over)
            running &= ~over
            observation = step.observation
    check.finish()
    return returns[:count], lengths[:count]


def _guarded(env: Env, call: Callable[[Any], Any], argument: Any) -> Any:
    try:
        return call(argument)
    except FROM_OUTSIDE:
        raise
    except BaseException as error:  # an exit too: it is the env's error, and no end of the run
        raise env_error(env.spec.id, "in an episode that is played", error, "it") from error
