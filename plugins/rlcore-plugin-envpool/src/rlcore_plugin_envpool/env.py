"""Envs of envpool, which steps many in C++ on several threads."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pydantic import BaseModel, Field

from rlcore.envs import InfosByEnv
from rlcore.errors import FROM_OUTSIDE, ConfigError, EnvError, describe, did_you_mean
from rlcore.types import Context, EnvSpec, InfoListener, Step

if TYPE_CHECKING:
    import numpy.typing as npt

_NOTHING: Final[Mapping[int, Any]] = MappingProxyType({})
_SEEDS: Final = 2**31 - 2**16  # seeds are of 32 bits, and env i has one that is i higher


class Config(BaseModel, extra="forbid"):
    """Which task, and how many of it."""

    id: str = Field(description="task of envpool, such as CartPole-v1 or Pong-v5")
    num_envs: int = Field(1, ge=1, description="envs that step together")
    threads: int = Field(0, ge=0, description="how many; 0 for as many as envpool chooses")
    max_episode_steps: int | None = Field(None, ge=1, description="truncate episodes here instead of the task's limit")
    kwargs: dict[str, Any] = Field(default_factory=dict, description="further arguments of envpool.make")


class EnvpoolEnv:
    """Wraps what `envpool.make(..., env_type="gymnasium")` makes, which cannot say its state: a resume begins again.

    Args:
        config: which task, and how many.
        context: unused.

    Raises:
        ConfigError: envpool is missing, there is no such task, or it does not take these arguments.
    """

    def __init__(self, config: Config, context: Context) -> None:
        try:
            self._envpool: Any = importlib.import_module("envpool")
        except ImportError as error:
            raise ConfigError(
                f"[env] use = 'envpool' needs envpool, which is not installed: {error}; pip install 'rlcore[envpool]'"
            ) from error
        known = self._envpool.list_all_envs()
        if config.id not in known:
            raise ConfigError(f"[env] id = {config.id!r}: envpool has no such task{did_you_mean(config.id, known)}")
        self._config = config
        self._pool = self._made(0)
        settings = self._pool.spec.config
        self.spec = EnvSpec(
            id=config.id,
            observation_space=self._pool.observation_space,
            action_space=self._pool.action_space,
            num_envs=config.num_envs,
            frame_skip=int(getattr(settings, "frame_skip", 1)),
            reset_mode="next_step",
            max_episode_steps=getattr(settings, "max_episode_steps", None),
        )
        self._infos: InfosByEnv | None = None  # only where somebody asks for those of every step

    def reset(self, seed: int | None = None) -> npt.NDArray[Any]:
        """Begin an episode in every env, env `i` with `seed + i`; a pool takes seeds only when it is made."""
        if seed is not None:
            self._pool.close()
            self._pool = self._made(seed % _SEEDS)
        observation, info = self._pool.reset()
        if self._infos is not None:
            self._infos.reset(info)
        return observation  # type: ignore[no-any-return]

    def step(self, action: npt.NDArray[Any]) -> Step:
        """Step every env; one whose episode ended in the step before is only reset."""
        try:
            observation, reward, terminated, truncated, info = self._pool.step(action)
        except FROM_OUTSIDE:
            raise
        except BaseException as error:
            raise EnvError(f"env {self.spec.id!r} raised {describe(error)}") from error
        over = terminated | truncated
        if self._infos is not None:
            self._infos.step(info, over)
        infos = {env: _of(info, env) for env in np.flatnonzero(over).tolist()} if over.any() else _NOTHING
        return Step(observation, reward.astype(np.float64), terminated, truncated, _NOTHING, infos)

    def tell_infos(self, listener: InfoListener) -> None:
        """Hand over the numbers among the infos of every reset and step."""
        self._infos = InfosByEnv(listener, self.spec.num_envs, _of)

    def close(self) -> None:
        """Close the pool."""
        self._pool.close()

    def _made(self, seed: int) -> Any:
        config = self._config
        limit = {} if config.max_episode_steps is None else {"max_episode_steps": config.max_episode_steps}
        try:
            return self._envpool.make(
                config.id,
                env_type="gymnasium",
                num_envs=config.num_envs,
                num_threads=config.threads,
                seed=seed,
                **limit,
                **config.kwargs,
            )
        except FROM_OUTSIDE:
            raise
        except BaseException as error:
            raise ConfigError(f"[env] id = {config.id!r} cannot be made by envpool: {describe(error)}") from error


def _of(info: Mapping[str, Any], env: int) -> dict[str, Any]:
    """Return the numbers among the infos of one env."""
    numbers = {name: value for name, value in info.items() if isinstance(value, np.ndarray) and value.ndim == 1}
    return {name: value[env].item() for name, value in numbers.items() if name != "env_id"}
