"""An environment's own vector form, which steps all its envs in one NumPy or C call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from rlcore.envs import InfosByEnv
from rlcore.errors import FROM_OUTSIDE, ConfigError, EnvError, StorageError, describe
from rlcore.types import EnvSpec, Heart, InfoListener, Step
from rlcore_plugin_gymnasium.chain import modules
from rlcore_plugin_gymnasium.checker import checked
from rlcore_plugin_gymnasium.held import held, large_attributes, shared
from rlcore_plugin_gymnasium.probe import NOT_TRIED, tried_out
from rlcore_plugin_gymnasium.recording import differing
from rlcore_plugin_gymnasium.rendering import pictures, render_fps
from rlcore_plugin_gymnasium.wrappers import constructed

if TYPE_CHECKING:
    import numpy.typing as npt

    from rlcore_plugin_gymnasium.config import Config

_DATA: Final = (np.ndarray, np.generic, bool, int, float, type(None))
_NOTHING: Final = MappingProxyType[int, Any]({})


class NativeEnv:
    """Wraps what `gymnasium.make_vec(..., vectorization_mode="vector_entry_point")` makes.

    Its state is every array and number among the attributes of the vector env, and its one generator.

    Args:
        config: which env, and how many.
        heart: counts the steps of trying it out.
    """

    def __init__(self, config: Config, heart: Heart | None = None) -> None:
        self._config = config
        self.heart = Heart() if heart is None else heart
        self._asked = False
        self._reason: str | None = None
        self._ignored: frozenset[str] = frozenset()
        self._lost: list[str] = []
        self._infos: InfosByEnv | None = None  # only where somebody asks for those of every step
        arguments = constructed(config.id, config.kwargs)
        if config.max_episode_steps is not None:
            arguments["max_episode_steps"] = config.max_episode_steps
        if config.render_mode is not None:
            arguments["render_mode"] = config.render_mode
        made = gymnasium.make_vec(
            config.id, config.num_envs, vectorization_mode=gymnasium.VectorizeMode.VECTOR_ENTRY_POINT, **arguments
        )
        mode = made.metadata.get("autoreset_mode")
        if mode is None:
            raise ConfigError(
                f"[env] the vector form of {config.id} does not say when it begins new episodes; if it does so in the "
                "step after an end, give its class metadata = {'autoreset_mode': AutoresetMode.NEXT_STEP}; otherwise "
                "use vectorization = 'serial'"
            )
        if mode != AutoresetMode.NEXT_STEP:
            raise ConfigError(
                f"[env] the vector form of {config.id} resets in mode {mode.value!r}; only NextStep is supported, "
                "use vectorization = 'serial'"
            )
        if made.single_observation_space.shape is None:
            raise ConfigError(
                f"[env] the vector form of {config.id} observes {made.single_observation_space}, which is not one "
                "array; use vectorization = 'serial'"
            )
        self._env: Any = made.unwrapped
        self.render_fps = render_fps(made.metadata)
        self.spec = EnvSpec(
            id=config.id,
            observation_space=made.single_observation_space,
            action_space=made.single_action_space,
            num_envs=config.num_envs,
            reset_mode="next_step",
            max_episode_steps=getattr(self._env, "max_episode_steps", None),
        )

    def reset(self, seed: int | None = None) -> npt.NDArray[Any]:
        """Reset every env; a natively vectorised env has one generator, seeded with `seed`."""
        prev_done = getattr(self._env, "prev_done", None)
        if isinstance(prev_done, np.ndarray):
            prev_done[:] = False
        observation, infos = self._guarded(self._env.reset, seed=seed)
        if self._infos is not None:
            self._infos.reset(infos)
        return observation  # type: ignore[no-any-return]

    def step(self, action: npt.NDArray[Any]) -> Step:
        """Step every env, which may write into its action; one that ended in the step before is only reset."""
        observation, reward, terminated, truncated, infos = self._guarded(self._env.step, action.copy())
        if self._infos is not None:
            self._infos.step(infos, terminated | truncated)
        return Step(observation, reward, terminated, truncated, _NOTHING, _NOTHING)

    def tell_infos(self, listener: InfoListener) -> None:
        """Hand over the infos of every reset and step."""
        self._infos = InfosByEnv(listener, self.spec.num_envs, _of_env)

    def checked(self) -> Iterator[tuple[str, str, str]]:
        """Yield what Gymnasium's own checker says of one environment."""
        return checked(gymnasium.make(self._config.id, **self._config.kwargs).unwrapped)

    def begin(self) -> npt.NDArray[Any]:
        """Begin a new episode in every env."""
        return self.reset()

    def modules(self) -> Iterator[str]:
        """Yield the names of the modules that these envs are written in."""
        return modules(self._env, self.spec.id)

    def inexact(self) -> str | None:
        """Return why the state of these envs cannot be saved, or None; tried out once, on other instances."""
        if not self._asked:
            self._asked = True
            outcome = tried_out(lambda: NativeEnv(self._config, self.heart)) if self._config.try_out else NOT_TRIED
            self._reason, self._ignored = outcome.why("from its attributes"), outcome.ignored
        if self._reason is None:
            return None
        return f"env {self.spec.id!r} {self._reason}"

    def state_dict(self) -> dict[str, Any]:
        """Return the data among the attributes of the vector env."""
        data = {name: value for name, value in vars(self._env).items() if isinstance(value, _DATA)}
        generator = dict(self._env.np_random.bit_generator.state)
        over = {} if self._infos is None else {"over": self._infos.over.copy()}
        return {"data": data, "generator": generator, "held": self.held(), "kwargs": self._config.kwargs, **over}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the attributes.

        Raises:
            StorageError: they are of envs that were made otherwise; those arguments are among the attributes.
        """
        if "data" not in state:
            raise StorageError("the running episodes are of envs that were stepped one by one ([env] vectorization)")
        if state.get("kwargs", self._config.kwargs) != self._config.kwargs:
            raise StorageError("the running episodes are of envs with other arguments ([env] kwargs)")
        self._env.np_random.bit_generator.state = state["generator"]  # made here, if there was none yet
        for name, value in state["data"].items():
            setattr(self._env, name, np.array(value) if isinstance(value, np.ndarray) else value)
        if self._infos is not None:
            self._infos.over[:] = state.get("over", False)
        self._lost = differing(state.get("held"), self.held())

    def unrestored(self) -> str | None:
        """Return what the last `load_state_dict` could not bring back, or None."""
        if not self._lost:
            return None
        return f"env {self.spec.id!r} holds what its state does not: {', '.join(self._lost)}"

    def held(self) -> dict[str, str]:
        """Return hashes of what the vector env holds, by attribute."""
        return held(self._env, self._ignored)

    def large_attributes(self) -> set[str]:
        """Return the names of attributes that hold many values."""
        return large_attributes(self._env)

    def shared(self) -> dict[str, str]:
        """Return hashes of what all instances share, by class or module and name."""
        return shared(self._env)

    def render(self, indices: Sequence[int] | None = None) -> npt.NDArray[Any]:
        """Return pictures of these envs, or of all, uint8 `[picture, height, width, 3]`; all are rendered."""
        shown = pictures([self._env], self.spec.id)
        return shown if indices is None else shown[list(indices)]

    def close(self) -> None:
        """Close the envs."""
        self._guarded(self._env.close)

    def _guarded(self, call: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        try:
            return call(*arguments, **keywords)
        except FROM_OUTSIDE:
            raise
        except BaseException as error:  # an exit too: it is the env's error, and no end of the run
            raise EnvError(f"env {self.spec.id!r} raised {describe(error)}") from error


def _of_env(infos: Mapping[str, Any], index: int) -> dict[str, Any]:
    """Return the infos of one env; under `_` and its name a vector env says of each info which envs have it."""
    infos_of_env: dict[str, Any] = {}
    for name, values in infos.items():
        is_flag = name.startswith("_") and name[1:] in infos
        has_it = f"_{name}" not in infos or infos[f"_{name}"][index]
        if is_flag or not has_it:
            continue
        if isinstance(values, Mapping):
            infos_of_env[name] = _of_env(values, index)
        else:
            infos_of_env[name] = values[index] if np.ndim(values) else values
    return infos_of_env
