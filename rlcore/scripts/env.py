"""The env that a script holds: what the policy sees of it, now, with every transform that was built so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rlcore.envs.transformed import TransformedEnv
from rlcore.errors import EnvError
from rlcore.plugins.known import lend
from rlcore.types import Env, EnvSpec, Policy, Step, Transform
from rlcore.types.context import Context

if TYPE_CHECKING:
    import gymnasium
    from tensordict import TensorDict

    from rlcore.types import Array


class ScriptEnv(Env):
    """An env of the same keys as the training envs, seen through frozen copies of the transforms.

    It can be looked at, stepped and rolled out while the training envs stay where they are: it has envs of its own,
    made when they are first needed. Copies of the transforms are taken at every `reset`.
    """

    def __init__(self, context: Context) -> None:
        self._context = context.for_component("env", "script")
        self._envs: Env | None = None
        self._view: TransformedEnv | None = None
        self._rollouts = 0

    @property
    def spec(self) -> EnvSpec:  # type: ignore[override]  # it changes with each transform that is built
        """Spaces and counts as the policy sees them."""
        return self._context.env_spec

    @property
    def observation_space(self) -> gymnasium.Space[Any]:
        """The space of one observation, after the transforms."""
        return self.spec.observation_space

    @property
    def action_space(self) -> gymnasium.Space[Any]:
        """The space of one action, as the policy takes it."""
        return self.spec.action_space

    @property
    def transform(self) -> list[Transform]:
        """The transforms themselves, in the order in which observations pass."""
        return self._context.transforms

    def rollout(
        self,
        max_steps: int,
        policy: Policy | Callable[[TensorDict], TensorDict] | None = None,
        *,
        break_when_any_done: bool = True,
        seed: int | None = None,
    ) -> TensorDict:
        """Return a few steps as a batch `[env, time]`, on the run's device; see `rlcore.rollout`.

        Args:
            max_steps: at most.
            policy: `model.policy`, or any callable from TensorDict to TensorDict; None for random actions.
            break_when_any_done: whether to stop at the first end of an episode.
            seed: default: one that follows from the run's seed and the number of rollouts before.
        """
        if seed is None:
            seed = self._context.seed(f"rollout {self._rollouts}") % 2**31
            self._rollouts += 1
        return lend("rlcore", "rollout")(
            self, max_steps, policy, break_when_any_done=break_when_any_done, seed=seed, device=self._context.device
        )

    def reset(self, seed: int | None = None) -> Array:
        """Begin new episodes, and return their first observations `[env, *shape]`."""
        if self._envs is None:
            self._envs = self._context.make_env_for("script", num_envs=self.spec.num_envs)
        self._view = TransformedEnv(self._envs, self.transform)
        return self._view.reset(seed)

    def step(self, action: Array) -> Step:
        """Step the envs with actions `[env, *shape]`.

        Raises:
            EnvError: there was no `reset`.
        """
        return self._started_view().step(action)

    def batch(self, batch: TensorDict) -> TensorDict:
        """Return a batch `[env, time]` of steps since the last `reset`, as the transforms change collected batches."""
        return self._started_view().batch(batch)

    def close(self) -> None:
        """Close the envs of its own; the training envs stay open."""
        if self._envs is not None:
            self._envs.close()
        self._envs = self._view = None

    def __repr__(self) -> str:
        transforms = ", ".join(type(transform).__name__ for transform in self.transform)
        return f"ScriptEnv({self.spec.id!r}, num_envs={self.spec.num_envs}, transform=[{transforms}])"

    def _started_view(self) -> TransformedEnv:
        if self._view is None:
            raise EnvError(f"env {self.spec.id!r}: call reset() before step()")
        return self._view
