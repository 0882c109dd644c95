"""ALE's own vector env, which steps all games in one call, on several threads."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import ale_py
import numpy as np
from ale_py.vector_env import AtariVectorEnv
from gymnasium.vector import AutoresetMode

from rlcore.envs import InfosByEnv
from rlcore.errors import ConfigError
from rlcore.types import EnvSpec, InfoListener, Step

if TYPE_CHECKING:
    from rlcore.types import Array
    from rlcore_plugin_atari.config import Config

_NOTHING: Final[Mapping[int, Any]] = MappingProxyType({})


class NativeGames:
    """Wraps `ale_py.vector_env.AtariVectorEnv`, which cannot say its state: a resume begins new games.

    Args:
        config: which game, and how many.
        rom: its name.

    Raises:
        ConfigError: a key that ALE's vector env does not have.
    """

    def __init__(self, config: Config, rom: str) -> None:
        if config.render_mode is not None:
            raise ConfigError("[env] render_mode: ALE's vector env shows no pictures; set vectorization = 'serial'")
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self._env: Any = AtariVectorEnv(
            rom,
            config.num_envs,
            num_threads=config.threads,
            max_num_frames_per_episode=config.max_frames,
            repeat_action_probability=config.repeat_action_probability,
            full_action_space=config.full_action_space,
            autoreset_mode=AutoresetMode.NEXT_STEP,
            img_height=config.size,
            img_width=config.size,
            grayscale=config.grayscale,
            stack_num=config.stack,
            frameskip=config.frame_skip,
            noop_max=config.noop_max,
            episodic_life=config.episodic_life,
            reward_clipping=False,
            use_fire_reset=config.fire_reset,
        )
        self.spec = EnvSpec(
            id=f"atari {rom}",
            observation_space=self._env.single_observation_space,
            action_space=self._env.single_action_space,
            num_envs=config.num_envs,
            frame_skip=config.frame_skip,
            reset_mode="next_step",
        )
        self._infos: InfosByEnv | None = None  # only where somebody asks for those of every step

    def reset(self, seed: int | None = None) -> Array:
        """Begin a game in every env, env `i` with `seed + i`."""
        observation, infos = self._env.reset(seed=seed)
        if self._infos is not None:
            self._infos.reset(infos)
        return observation  # type: ignore[no-any-return]

    def step(self, action: Array) -> Step:
        """Step every game; one whose episode ended in the step before is only reset."""
        observation, reward, terminated, truncated, infos = self._env.step(action)
        if self._infos is not None:
            self._infos.step(infos, terminated | truncated)
        return Step(observation, reward.astype(np.float64), terminated, truncated, _NOTHING, _NOTHING)

    def tell_infos(self, listener: InfoListener) -> None:
        """Hand over what ALE says of every reset and step: lives, and frames since the power switch and of the game."""
        self._infos = InfosByEnv(listener, self.spec.num_envs, _of_env)

    def close(self) -> None:
        """Do nothing: the threads end with the object."""


def _of_env(infos: Mapping[str, Any], index: int) -> dict[str, Any]:
    """Return the infos of one game; its own number is none of them."""
    return {name: values[index] for name, values in infos.items() if name != "env_id"}
