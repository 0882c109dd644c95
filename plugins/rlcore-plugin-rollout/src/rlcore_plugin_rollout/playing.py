"""Plays complete episodes of the deterministic policy, with frozen transforms, for what measures or shows a policy."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from rlcore.envs import TransformedEnv, env_error, finite_in, observation_dtype
from rlcore.errors import FROM_OUTSIDE, EnvError
from rlcore.types import Context, Env
from rlcore_plugin_rollout.action_check import ActionCheck
from rlcore_plugin_rollout.carrying import carried

if TYPE_CHECKING:
    from rlcore.types import Array, BoolArray

log = logging.getLogger(__name__)

# steps after which an episode is cut where the env has no limit: the frames of half an hour of Atari, its own limit
LONGEST: Final = 108_000


def play(
    env: Env,
    context: Context,
    seed: int,
    look: Callable[[BoolArray, BoolArray], object] = lambda playing, over: None,
    episodes: int | None = None,
    most_steps: int | None = None,
) -> tuple[Array, Array]:
    """Play one episode in each env, to its end.

    Args:
        env: used from a reset on; what it does after the end of an episode does not count.
        context: of whoever plays; has the model and the transforms.
        seed: env `i` is reset with `seed + i`.
        look: called after the reset and after each step with two masks `[env]`: which envs were in their episode, and
            of which that was the end.
        episodes: how many, where that is less than the number of envs.
        most_steps: of an episode, which is cut there, aloud; default: `LONGEST` where the env has no limit of its own.

    Returns:
        The undiscounted returns `[episode]`, float64, and the lengths in steps `[episode]`, int64.

    Raises:
        EnvError: an env raises, whatever it is, or returns something of another form than its spec says, or numbers
            that are not finite.
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
    finite = finite_in(seen_env.spec.observation_space)
    observation = _guarded(seen_env, seen_env.reset, seed)
    longest = most_steps or (LONGEST if env.spec.max_episode_steps is None else sys.maxsize)
    look(running, ~running)
    with torch.inference_mode():
        while running.any() and lengths.max() < longest:
            # a copy, which begins in memory where all tensors do: the bits of a product of matrices depend on it
            observations = torch.tensor(np.asarray(observation, dtype=dtype), device=context.device)
            if not finite(np.asarray(observation)[running]):
                raise _not_finite("an observation", env)
            action = mode(observations).cpu().numpy()
            check.add(action)
            step = _guarded(seen_env, seen_env.step, action)
            context.heart.beats += 1
            returns += np.where(running, step.reward, 0.0)
            lengths += running
            over = step.terminated | step.truncated
            look(running, over)
            running &= ~over
            observation = step.observation
    check.finish()
    _check_returns(env, returns, running, lengths)
    return returns[:count], lengths[:count]


def _check_returns(env: Env, returns: Array, running: BoolArray, lengths: Array) -> None:
    """Refuse returns that are not finite, and tell of episodes that are still running."""
    if not np.isfinite(returns).all():
        raise _not_finite("a reward, or the sum of all,", env)
    if running.any():
        log.warning(
            "env %r: %d of %d episodes had no end after %d steps and were cut there; their returns are those of these "
            "steps",
            *(env.spec.id, running.sum(), (lengths > 0).sum(), lengths.max()),
        )


def _not_finite(what: str, env: Env) -> EnvError:
    return EnvError(f"env {env.spec.id!r}: {what} of an episode that is played is not finite; repair the environment")


def _guarded(env: Env, call: Callable[[Any], Any], argument: Any) -> Any:
    try:
        return call(argument)
    except FROM_OUTSIDE:
        raise
    except BaseException as error:  # an exit too: it is the env's error, and no end of the run
        raise env_error(env.spec.id, "in an episode that is played", error, "it") from error
