"""Gymnasium envs stepped one by one in this process; a new episode begins in the step that ends one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import gymnasium
import numpy as np

from rlcore.errors import ConfigError, EnvError
from rlcore.types import EnvSpec, Step

if TYPE_CHECKING:
    import numpy.typing as npt

    from rlcore_plugin_gymnasium.env import Config

_NOTHING: Final[Mapping[int, Any]] = MappingProxyType({})


class SerialEnv:
    """A list of envs behind the interface of a vector env."""

    def __init__(self, config: Config) -> None:
        made = [_make(config) for _ in range(config.num_envs)]
        self._envs = [env for env, _ in made]
        self._limit = made[0][1]
        self._frame_skip = config.frame_skip
        first = self._envs[0]
        self.spec = EnvSpec(
            id=config.id,
            observation_space=first.observation_space,
            action_space=first.action_space,
            num_envs=config.num_envs,
            frame_skip=config.frame_skip,
            max_episode_steps=None if self._limit is None else -(-self._limit // config.frame_skip),
        )
        self._discrete = isinstance(first.action_space, gymnasium.spaces.Discrete)
        shape, dtype = first.observation_space.shape, first.observation_space.dtype
        if shape is None or dtype is None:
            raise ConfigError(
                f"[env] {config.id} observes {first.observation_space}, which is not one array; flatten it"
            )
        self._observation = np.zeros((config.num_envs, *shape), dtype=dtype)
        self._reward = np.zeros(config.num_envs)
        self._terminated = np.zeros(config.num_envs, dtype=bool)
        self._truncated = np.zeros(config.num_envs, dtype=bool)
        self._elapsed = [0] * config.num_envs
        self._closed = False

    def reset(self, seed: int | None = None) -> npt.NDArray[Any]:
        """Start every env anew, env `i` with `seed + i`."""
        for index, env in enumerate(self._envs):
            observation = self._guarded(index, env.reset, seed=None if seed is None else seed + index)[0]
            self._guarded(index, self._observation.__setitem__, index, observation)
            self._elapsed[index] = 0
        return self._observation

    def step(self, action: npt.NDArray[Any]) -> Step:
        """Step every env; one whose episode ends is reset at once."""
        finals: dict[int, Any] | None = None
        infos: dict[int, Any] | None = None
        step_one = self._repeat if self._frame_skip > 1 else self._step_one
        for index, chosen in enumerate(action.tolist() if self._discrete else action):
            observation, reward, terminated, truncated, info = step_one(index, chosen)
            if terminated or truncated:
                finals, infos = finals or {}, infos or {}
                finals[index], infos[index] = np.array(observation), info  # `reset` may write into the same array
                observation = self._guarded(index, self._envs[index].reset)[0]
                self._elapsed[index] = 0
            try:
                self._observation[index] = observation
                self._reward[index] = reward
            except (TypeError, ValueError) as error:  # of another shape than the space says, or no number
                raise self._blame(index, error) from error
            self._terminated[index] = terminated
            self._truncated[index] = truncated
        return Step(
            self._observation, self._reward, self._terminated, self._truncated, finals or _NOTHING, infos or _NOTHING
        )

    def close(self) -> None:
        """Close every env."""
        if not self._closed:
            self._closed = True
            for env in self._envs:
                env.close()

    def _step_one(self, index: int, action: Any) -> tuple[Any, Any, bool, bool, Mapping[str, Any]]:
        try:
            observation, reward, terminated, truncated, info = self._envs[index].step(action)
        except Exception as error:
            raise self._blame(index, error) from error
        self._elapsed[index] += 1
        if self._limit is not None and self._elapsed[index] >= self._limit:
            truncated = True
        return observation, reward, terminated, truncated, info

    def _repeat(self, index: int, action: Any) -> tuple[Any, Any, bool, bool, Mapping[str, Any]]:
        total = 0.0
        for _ in range(self._frame_skip):
            observation, reward, terminated, truncated, info = self._step_one(index, action)
            total += reward
            if terminated or truncated:
                break
        return observation, total, terminated, truncated, info

    def _guarded(self, index: int, call: Any, *arguments: Any, **keywords: Any) -> Any:
        try:
            return call(*arguments, **keywords)
        except Exception as error:
            raise self._blame(index, error) from error

    def _blame(self, index: int, error: Exception) -> EnvError:
        return EnvError(
            f"env {self.spec.id!r}, number {index}, raised {type(error).__name__} at step {self._elapsed[index]} of "
            f"its episode: {error}"
        )


def _make(config: Config) -> tuple[gymnasium.Env[Any, Any], int | None]:
    """Make one env, and return it with its step limit.

    The time limit and the order check that `gymnasium.make` wraps around an env are done here instead: each wrapper
    costs a Python call per step.
    """
    limit = {} if config.max_episode_steps is None else {"max_episode_steps": config.max_episode_steps}
    env = gymnasium.make(config.id, disable_env_checker=True, **limit, **config.kwargs)
    if not isinstance(env, gymnasium.wrappers.TimeLimit):
        return env, None
    steps, inner = env._max_episode_steps, env.env
    return (inner.env if isinstance(inner, gymnasium.wrappers.OrderEnforcing) else inner), steps
