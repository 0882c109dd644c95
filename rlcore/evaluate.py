"""The evaluator: complete episodes of the deterministic policy on fixed seeds, with frozen transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, Field

from rlcore.config import Interval
from rlcore.context import Context
from rlcore.transformed import TransformedEnv, observation_dtype
from rlcore.types import Env, EvaluationResult


class EpisodeEvaluator:
    """Runs every episode from its own seed to its end, so that short episodes are not favoured.

    Each env runs one episode; with fewer envs than episodes, all of them begin anew when the last one has ended.
    """

    class Config(BaseModel, extra="forbid"):
        """When and how much to evaluate."""

        every: Interval | None = Field(None, description="interval of evaluation; default: only at start and end")
        at_start: bool = Field(True, description="evaluate before the first frame")
        episodes: int = Field(10, ge=1, description="episodes per evaluation")
        seed: int = Field(10_000, ge=0, description="reset seed of the first episode; the others count up")
        num_envs: int | None = Field(None, ge=1, description="envs that step together; default: one per episode")

    def __init__(self, config: Config, context: Context) -> None:
        self.every = config.every
        self.at_start = config.at_start
        self._context = context
        self._seeds = tuple(range(config.seed, config.seed + config.episodes))
        self._num_envs = min(config.num_envs or config.episodes, config.episodes)
        self._make_env: Callable[[int], Env] = context.part("make_env")
        self._env: Env | None = None

    def evaluate(self) -> EvaluationResult:
        """Run every episode to its end."""
        if self._env is None:
            self._env = self._make_env(self._num_envs)
        policy = self._context.model.policy
        policy.refresh()
        returns: list[float] = []
        lengths: list[int] = []
        for begin in range(0, len(self._seeds), self._num_envs):
            seeds = self._seeds[begin : begin + self._num_envs]
            env = TransformedEnv(self._env, self._context.transforms)
            found = self._episodes(env, policy, seeds)
            returns += found[0]
            lengths += found[1]
        return EvaluationResult(self._context.progress.frames, self._seeds, tuple(returns), tuple(lengths))

    def close(self) -> None:
        """Close the evaluation envs."""
        if self._env is not None:
            self._env.close()

    def _episodes(self, env: Env, policy: Any, seeds: tuple[int, ...]) -> tuple[list[float], list[int]]:
        """Return the returns and lengths of the first episode of as many envs as there are seeds."""
        count, num_envs = len(seeds), env.spec.num_envs
        running = np.arange(num_envs) < count
        returns, lengths = np.zeros(num_envs), np.zeros(num_envs, dtype=np.int64)
        dtype, device = observation_dtype(env.spec.observation_space), self._context.device
        observation = env.reset(seed=seeds[0])
        with torch.inference_mode():
            while running.any():
                seen = torch.from_numpy(np.asarray(observation, dtype=dtype)).to(device)
                step = env.step(policy.mode(seen).cpu().numpy())
                self._context.heart.beats += 1
                returns += step.reward * running
                lengths += running
                running &= ~(step.terminated | step.truncated)
                observation = step.observation
        return returns[:count].tolist(), lengths[:count].tolist()
