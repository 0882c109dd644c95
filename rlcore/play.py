"""Plays complete episodes of the deterministic policy, with frozen transforms, for what measures or shows a policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from rlcore.context import Context
from rlcore.types import Env, Transform

if TYPE_CHECKING:
    from rlcore.types import Array, BoolArray


def play(
    env: Env, context: Context, seed: int, before_step: Callable[[BoolArray], object] = lambda running: None
) -> tuple[Array, Array]:
    """Play one episode in each env, to its end.

    Args:
        env: used from a reset on; what it does after the end of an episode does not count.
        context: of whoever plays; has the model and the transforms.
        seed: env `i` is reset with `seed + i`.
        before_step: called before each step, with the envs `[env]` whose episode is not over.

    Returns:
        The undiscounted returns `[env]`, float64, and the lengths in steps `[env]`, int64.
    """
    policy = context.model.policy
    policy.refresh()
    transforms = [transform.frozen() for transform in context.transforms]
    running = np.ones(env.spec.num_envs, dtype=bool)
    first = running.copy()
    returns, lengths = np.zeros(len(running)), np.zeros(len(running), dtype=np.int64)
    observation = env.reset(seed=seed)
    with torch.inference_mode():
        while running.any():
            before_step(running)
            step = env.step(policy.mode(_seen(context, transforms, observation, first)).cpu().numpy())
            context.heart.beats += 1
            returns += step.reward * running
            lengths += running
            first = step.terminated | step.truncated
            running &= ~first
            observation = step.observation
    return returns, lengths


def _seen(context: Context, transforms: list[Transform], observation: Any, first: Any) -> torch.Tensor:
    """Return the observation as the policy sees it."""
    for transform in transforms:
        observation = transform.step(observation, first)
    space = context.env_spec.observation_space
    dtype = np.float32 if space.dtype == np.float64 else space.dtype
    return torch.from_numpy(np.asarray(observation, dtype=dtype)).to(context.device)
