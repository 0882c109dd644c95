"""Vector envs whose observations are dicts of arrays, seen as envs of one packed array."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

from rlcore.envs.action_masks import without_choice
from rlcore.envs.packed import ACTION_MASK, Packed, is_nested, packed_space
from rlcore.errors import EnvError

if TYPE_CHECKING:
    from rlcore.types import Env
    from rlcore.types.records import Array, BoolArray, Step


def packed_env(env: Env) -> Env:
    """Return an env whose observations are arrays: those of dicts and tuples packed, others the env itself."""
    # it hands on whatever else the env defines, and so derives from no class that would answer in its place
    return cast("Env", PackedEnv(env)) if is_nested(env.spec.observation_space) else env


class PackedEnv:
    """Packs the observations of an env, `{leaf: [env, *shape]}`, into rows `[env, words]`. The rest is the env's.

    Args:
        env: with observations in a `gymnasium.spaces.Dict` or `Tuple`.

    Attributes:
        spec: with the packed space.

    Raises:
        ConfigError: a leaf is not one array, or the mask does not fit the actions.
    """

    def __init__(self, env: Env) -> None:
        space = packed_space(env.spec.observation_space, env.spec.action_space)
        assert isinstance(space, Packed)
        self.spec = replace(env.spec, observation_space=space)
        self._env = env
        self._space = space
        self._rows = space.rows(env.spec.num_envs)
        self._arrays = space.arrays(self._rows)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_env":  # while it is copied or unpickled
            raise AttributeError(name)
        return attrgetter(name)(self._env)  # whatever else an env may have

    def reset(self, seed: int | None = None) -> Array:
        """Reset the env; the rows of its observations."""
        return self._packed(self._env.reset(seed=seed))

    def step(self, action: Array) -> Step:
        """Step the env; the rows of its observations."""
        step = self._env.step(action)
        finals = {index: self._final(final, index) for index, final in step.final_observation.items()}
        over = step.terminated | step.truncated if self.spec.reset_mode == "next_step" else None
        return step._replace(observation=self._packed(step.observation, over), final_observation=finals)

    def _packed(self, observation: Any, over: BoolArray | None = None) -> Array:
        try:
            self._space.write(observation, self._arrays)
        except ValueError as error:
            raise self._error(error) from None
        if self._space.choices:
            stuck = without_choice(self._space, self._rows)
            if over is not None:
                stuck &= ~over
            if stuck.any():
                raise EnvError(
                    f"env {self.spec.id!r}: the {ACTION_MASK} of env {int(stuck.argmax())} allows no action; allow "
                    "one, or end the episode there"
                )
        return self._rows

    def _final(self, final: Any, index: int) -> Array:
        try:
            return self._space.pack(final)
        except ValueError as error:
            raise self._error(error, f"final_observation of env {index}: ") from None

    def _error(self, error: ValueError, where: str = "") -> EnvError:
        return EnvError(f"env {self.spec.id!r}: {where}{error}; fix the env, or the space that declares it otherwise")
