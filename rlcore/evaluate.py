"""The evaluator: complete episodes of the deterministic policy on fixed seeds, with frozen transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, Field

from rlcore.config import Interval
from rlcore.context import Context
from rlcore.types import Env, EvaluationResult, Transform


class EpisodeEvaluator:
    """Runs one episode in each of as many envs, so that short episodes are not favoured."""

    class Config(BaseModel, extra="forbid"):
        """When and how much to evaluate."""

        every: Interval | None = Field(None, description="interval of evaluation; default: only at start and end")
        at_start: bool = Field(True, description="evaluate before the first frame")
        episodes: int = Field(10, ge=1, description="episodes per evaluation")
        seed: int = Field(10_000, ge=0, description="reset seed of the first episode; the others count up")

    def __init__(self, config: Config, context: Context) -> None:
        self.every = config.every
        self.at_start = config.at_start
        self._context = context
        self._seeds = tuple(range(config.seed, config.seed + config.episodes))
        self._make_env: Callable[[int], Env] = context.part("make_env")
        self._env: Env | None = None

    def evaluate(self) -> EvaluationResult:
        """Run every episode to its end."""
        if self._env is None:
            self._env = self._make_env(len(self._seeds))
        policy = self._context.model.policy
        policy.refresh()
        returns, lengths = self._episodes(self._env, policy)
        return EvaluationResult(self._context.progress.frames, self._seeds, tuple(returns), tuple(lengths))

    def close(self) -> None:
        """Close the evaluation envs."""
        if self._env is not None:
            self._env.close()

    def _episodes(self, env: Env, policy: Any) -> tuple[list[float], list[int]]:
        transforms = [transform.frozen() for transform in self._context.transforms]
        running = np.ones(len(self._seeds), dtype=bool)
        first = running.copy()
        returns, lengths = np.zeros(len(self._seeds)), np.zeros(len(self._seeds), dtype=np.int64)
        observation = env.reset(seed=self._seeds[0])
        with torch.inference_mode():
            while running.any():
                action = policy.mode(self._seen(transforms, observation, first)).cpu().numpy()
                step = env.step(action)
                self._context.heart.beats += 1
                returns += step.reward * running
                lengths += running
                first = step.terminated | step.truncated
                running &= ~first
                observation = step.observation
        return returns.tolist(), lengths.tolist()

    def _seen(self, transforms: list[Transform], observation: Any, first: Any) -> torch.Tensor:
        """Return the observation as the policy sees it."""
        for transform in transforms:
            observation = transform.step(observation, first)
        space = self._context.env_spec.observation_space
        dtype = np.float32 if space.dtype == np.float64 else space.dtype
        return torch.from_numpy(np.asarray(observation, dtype=dtype)).to(self._context.device)
