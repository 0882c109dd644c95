"""An environment's own vector form, which steps all its envs in one NumPy or C call."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from rlcore.errors import ConfigError, EnvError
from rlcore.types import EnvSpec, Step

if TYPE_CHECKING:
    import numpy.typing as npt

    from rlcore_plugin_gymnasium.env import Config

_NOTHING: Final = MappingProxyType[int, Any]({})


class NativeEnv:
    """Wraps what `gymnasium.make_vec(..., vectorization_mode="vector_entry_point")` makes."""

    def __init__(self, config: Config) -> None:
        arguments = dict(config.kwargs)
        if config.max_episode_steps is not None:
            arguments["max_episode_steps"] = config.max_episode_steps
        made = gymnasium.make_vec(
            config.id, config.num_envs, vectorization_mode=gymnasium.VectorizeMode.VECTOR_ENTRY_POINT, **arguments
        )
        mode = made.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        if mode != AutoresetMode.NEXT_STEP:
            raise ConfigError(
                f"[env] the vector form of {config.id} resets in mode {mode.value!r}; only NextStep is supported, "
                "use vectorization = 'serial'"
            )
        self._env: Any = made.unwrapped
        self.spec = EnvSpec(
            id=config.id,
            observation_space=made.single_observation_space,
            action_space=made.single_action_space,
            num_envs=config.num_envs,
            reset_mode="next_step",
            max_episode_steps=getattr(self._env, "max_episode_steps", None),
        )

    def reset(self, seed: int | None = None) -> npt.NDArray[Any]:
        """Start every env anew; a natively vectorised env draws from one generator, seeded with `seed`."""
        prev_done = getattr(self._env, "prev_done", None)
        if isinstance(prev_done, np.ndarray):
            prev_done[:] = False
        observation, _ = self._env.reset(seed=seed)
        return observation  # type: ignore[no-any-return]

    def step(self, action: npt.NDArray[Any]) -> Step:
        """Step every env; one whose episode ended in the step before is only reset."""
        try:
            observation, reward, terminated, truncated, _ = self._env.step(action)
        except Exception as error:
            raise EnvError(f"env {self.spec.id!r} raised {type(error).__name__}: {error}") from error
        return Step(observation, reward, terminated, truncated, _NOTHING, _NOTHING)

    def close(self) -> None:
        """Close the envs."""
        self._env.close()
