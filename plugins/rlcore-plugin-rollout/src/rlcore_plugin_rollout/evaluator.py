"""The evaluator: complete episodes of the deterministic policy on fixed seeds, with frozen transforms."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from pydantic import BaseModel, Field

from rlcore.errors import ConfigError
from rlcore.types import Context, Env, EvaluationResult, Evaluator, Interval
from rlcore_plugin_rollout.playing import LONGEST, play

log = logging.getLogger("rlcore")  # the log that a training shows

# an env may be an emulator or a simulation of many megabytes
_MOST_ENVS: Final = 100


class EpisodeEvaluator(Evaluator):
    """Runs every episode from its own seed to its end, so that short episodes are not favoured.

    Each env runs one episode; with fewer envs than episodes, all of them start over when the last one has ended.
    """

    class Config(BaseModel, extra="forbid"):
        """When and how much to evaluate."""

        every: Interval | None = Field(None, description="interval of evaluation; default: only at start and end")
        at_start: bool = Field(True, description="evaluate before the first frame")
        episodes: int = Field(10, ge=1, description="episodes per evaluation")
        seed: int = Field(10_000, ge=0, description="reset seed of the first episode; the others count up")
        num_envs: int | None = Field(
            None, ge=1, description=f"envs that step together; default: one per episode, at most {_MOST_ENVS}"
        )
        max_episode_steps: int | None = Field(
            None, ge=1, description=f"cut episodes here; default: the env's limit, or {LONGEST:,} where it has none"
        )

    def __init__(self, config: Config, context: Context) -> None:
        self.every = config.every
        self.at_start = config.at_start
        self._context = context
        self._seeds = tuple(range(config.seed, config.seed + config.episodes))
        self._policies: tuple[str, ...] = context.built.get("policies", ())  # of each agent of a game
        agents = max(1, len(self._policies))
        self._num_envs = min(config.num_envs or max(agents, _MOST_ENVS // agents * agents), config.episodes)
        for key, value in (("episodes", config.episodes), ("num_envs", self._num_envs)):
            if value % agents:
                raise ConfigError(
                    f"[evaluator] {key} = {value}: episodes are those of agents, and a game has {agents}; several "
                    f"policies play whole games, so set it to a multiple of {agents}"
                )
        self._most_steps = config.max_episode_steps
        if context.env_spec.max_episode_steps is None and config.max_episode_steps is None:
            log.info(
                "env %r declares no step limit: an episode of an evaluation that does not end is cut after %d steps; "
                "set [evaluator] max_episode_steps",
                *(context.env_spec.id, LONGEST),
            )
        self._make_env: Callable[[int], Env] = context.make_env
        self._env: Env | None = None

    def evaluate(self) -> EvaluationResult:
        """Run every episode to its end."""
        if self._env is None:
            self._env = self._make_env(self._num_envs)
        returns: list[float] = []
        lengths: list[int] = []
        for begin in range(0, len(self._seeds), self._num_envs):
            left = self._seeds[begin:]
            played_returns, played_lengths = play(
                self._env, self._context, left[0], episodes=len(left), most_steps=self._most_steps
            )
            returns += played_returns.tolist()
            lengths += played_lengths.tolist()
        policies = self._policies * (len(returns) // max(1, len(self._policies)))
        return EvaluationResult(self._context.progress.now, self._seeds, tuple(returns), tuple(lengths), policies)

    def close(self) -> None:
        """Close the evaluation envs."""
        if self._env is not None:
            self._env.close()
