"""Environments by their ids; those of dm_control through shimmy, with flat observations and repeated actions."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np


class Repeated(gymnasium.Wrapper):
    """Takes each action several times and adds the rewards up."""

    def __init__(self, env: gymnasium.Env, times: int) -> None:
        super().__init__(env)
        self._times = times

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        total = 0.0
        for _ in range(self._times):
            observation, reward, terminated, truncated, info = self.env.step(action)
            total += float(reward)
            if terminated or truncated:
                break
        return observation, total, terminated, truncated, info


def make_env(env_id: str, repeat: int = 1) -> gymnasium.Env:
    """Make an environment; one of dm_control has 1,000 steps of the simulation, and float32 observations."""
    if not env_id.startswith("dm_control/"):
        return gymnasium.make(env_id)
    import shimmy

    gymnasium.register_envs(shimmy)
    env = gymnasium.wrappers.FlattenObservation(gymnasium.make(env_id))
    flat = gymnasium.spaces.Box(-np.inf, np.inf, env.observation_space.shape, np.float32)
    env = gymnasium.wrappers.TransformObservation(env, lambda value: np.asarray(value, np.float32), flat)
    return Repeated(env, repeat) if repeat > 1 else env
