"""The interfaces of envs and of what changes what they show: vector envs, envs that can be rendered, transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    import gymnasium
    from tensordict import TensorDict

    from rlcore.types.records import Array, BoolArray, EnvSpec, Step


class Env(Protocol):
    """A vector of environments that step together, arrays in and arrays out."""

    @property
    def spec(self) -> EnvSpec:
        """Spaces, counts and how the envs are reset."""
        ...

    def reset(self, seed: int | None = None) -> Array:
        """Reset every env, env `i` with `seed + i`, and return the observations `[env, *shape]`."""
        ...

    def step(self, action: Array) -> Step:
        """Apply `action`, `[env, *shape]` inside the action space, to every env."""
        ...

    def close(self) -> None:
        """Release what the envs hold. May be called twice."""
        ...


@runtime_checkable
class RenderableEnv(Env, Protocol):
    """An env that can show itself; its config has a key `render_mode`, None by default.

    Attributes:
        render_fps: steps per second at which the pictures of all steps show real time.
    """

    render_fps: float

    def render(self, indices: Sequence[int] | None = None) -> Array:
        """Return pictures of these envs, or of all, as they stand: uint8 `[picture, height, width, 3]`.

        Raises:
            EnvError: it was made without a `render_mode`, or there is nothing to render with; says what to install.
        """
        ...


class Transform(Protocol):
    """Changes observations before the actor sees them, or batches after they were collected."""

    def observation_space(self, space: gymnasium.Space[Any]) -> gymnasium.Space[Any]:
        """Return the space of one observation after the transform."""
        ...

    def fit(self, env: Env) -> None:
        """Take initial statistics, for example from random frames. `env` is used for nothing else afterwards."""
        ...

    def step(self, observation: Array, first: BoolArray) -> Array:
        """Return the transformed observations, `[env, *shape]`; called before every policy step.

        `first`, `[env]`, marks the observations that begin an episode.
        """
        ...

    def final(self, observation: Array, env_index: int) -> Array:
        """Return the transformed last observation `[*shape]` of an episode; called before the `step` that follows."""
        ...

    def batch(self, batch: TensorDict) -> TensorDict:
        """Return the transformed batch `[env, time]`; called once after collection."""
        ...

    def frozen(self) -> Transform:
        """Return a copy for evaluation that shares no state and does not learn from what it sees."""
        ...


class ActionTransform(Transform, Protocol):
    """A transform that also changes actions. The batch holds those of the policy, the env gets those of the transform.

    Where several transforms do, an action passes them in the opposite order of observations.
    """

    def action_space(self, space: gymnasium.Space[Any]) -> gymnasium.Space[Any]:
        """Return the space of the actions that the policy takes, from that of the actions that `action` returns."""
        ...

    def action(self, action: Array) -> Array:
        """Return what the env gets for the actions `[env, *shape]` of the policy, as a new array."""
        ...
