"""What vector envs and transforms are, and what they may have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from rlcore.types.part import Part

if TYPE_CHECKING:
    import gymnasium
    import torch
    from tensordict import TensorDict

    from rlcore.types.exports import ModuleWithMemory
    from rlcore.types.records import Array, BoolArray, EnvSpec, Step


# takes the number of an env, its infos, and whether they are those of a reset
InfoListener: TypeAlias = Callable[[int, Mapping[str, Any], bool], None]


class Env(Part, ABC):
    """A vector of environments that step together, arrays in and arrays out.

    The config of an env has a key `num_envs`: evaluations and the fitting of transforms build more of the same env,
    with another number. Each vector is used by one thread, in the process that trains or in a worker of a collector;
    workers build their own, so that an env is never sent to another process. An env may also have a state (`Stateful`),
    which the collector saves; without one a resume begins new episodes.

    What an env raises, an exit too, ends the run as an `EnvError` that names the env and the step.

    An env that can show itself has a key `render_mode` in its config, None by default, a method `render`, and the
    attribute `render_fps`.

    Attributes:
        spec: spaces, counts and how the envs are reset; the same for the whole life of the env.
        render_fps: steps per second at which the pictures of all steps show real time.

    Called in `plugins/rlcore-plugin-rollout/src/rlcore_plugin_rollout/stepping.py`:

        observation = self._check.observation(self.env.reset(seed=seed + self._first_env))
        ...
        step_envs = through_actions(self.env.step, self._transforms)
        ...
        for time, observation in enumerate(rows):
            ...
            step = step_envs(acted)
    """

    spec: EnvSpec
    render_fps: float = 0.0

    @abstractmethod
    def reset(self, seed: int | None = None) -> Array:
        """Begin an episode in every env.

        Called once before the first step, and before each episode of an evaluation. Within a run an env begins its next
        episodes itself, in `step`.

        Args:
            seed: env `i` is reset with `seed + i`, and everything random in it follows from that; None to go on with
                the generators as they are.

        Returns:
            The observations `[env, *shape]`, dtype and bounds those of `spec.observation_space`. The array stays the
            env's: it may write the next observations into it.
        """

    @abstractmethod
    def step(self, action: Array) -> Step:
        """Step every env, and begin the next episode where one ended, as `spec.reset_mode` says.

        Called once per time step: `batch / num_envs` times per batch.

        Args:
            action: `[env, *shape]`, dtype and values those of `spec.action_space`. It is the caller's: to be read
                during this call, and not written to.

        Returns:
            What happened, see `Step`. The arrays stay the env's, and the next call may overwrite them. The `infos` of
            ended episodes are handed to hooks, and must not change after the call.
        """

    def render(self, indices: Sequence[int] | None = None) -> Array:
        """Return pictures of the envs as they stand. Changes nothing that a later step shows.

        Where the last step ended an episode, it is the picture of that end, also where the next episode has begun.
        Called before the first step and after steps, at most once each, only of envs that were built with a
        `render_mode`.

        Args:
            indices: which envs, in this order; None for all.

        Returns:
            uint8 `[picture, height, width, 3]`; the next call may overwrite it.

        Raises:
            EnvError: it was made without a `render_mode`, or there is nothing to render with; says what to install.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method render")

    def tell_infos(self, listener: InfoListener) -> None:
        """Hand over the infos of every reset and step from now on; called at most once, before the first reset.

        Args:
            listener: called as `listener(index, infos, first)` with the number of the env, in the order of what
                happens: with `first` after each reset, without it after each step. Where a step ends an episode and
                begins the next one, it is called for both. It copies what it keeps, as the env may write the next
                infos into the same arrays. What it raises ends the run. Loading a state tells of nothing.
        """

    def batch(self, batch: TensorDict) -> TensorDict:
        """Return a batch `[env, time]` of steps of this env as it changes it, such as by its transforms."""
        return batch

    def modules(self) -> Iterator[str]:
        """Yield the names of further modules in which its behaviour is written; a resume says which changed."""
        return iter(())


class Transform(Part, ABC):
    """Changes observations before the actor sees them, or batches after they were collected.

    `fit` and `observation_space` are called while the run is built, `step` and `final` for every step, in the process
    that steps the envs: a collector with workers gives each its own copy. `batch` is called once per batch, in the
    process that trains. Evaluations use copies that `frozen` makes. No method changes the arrays that it is given.

    A transform may also have a state (`Stateful`), and say in `writes` what it puts into batches.

    One that defines `action` changes actions too: the batch holds those of the policy, the env gets those of the
    transform. Where several transforms do, an action passes them in the opposite order of observations.

    Attributes:
        takes_leaves: whether it may take observations of several arrays, rows of `rlcore.envs.Packed`, without naming a
            leaf.
        inner: the transform that this one puts on a leaf of observations; None for one that changes them itself.

    Called in `plugins/rlcore-plugin-rollout/src/rlcore_plugin_rollout/stepping.py`:

        for index, final in step.final_observation.items():
            for transform in self._transforms:
                final = transform.final(final, index)
        ...
        for transform in self._transforms:
            observation = transform.step(observation, first)

    Called in `rlcore/training/loop.py`:

        for transform in parts.transforms:
            batch = transform.batch(batch)

    Called in `rlcore/envs/transformed.py`:

        for change in changes:
            action = change(action)
        return step(action)
    """

    takes_leaves: bool = False
    inner: Transform | None = None

    @abstractmethod
    def observation_space(self, space: gymnasium.Space[Any]) -> gymnasium.Space[Any]:
        """Return the space of one observation after the transform.

        Args:
            space: of one observation before it. Not to be changed.

        Returns:
            A space whose shape and dtype are those of what `step` and `final` return.
        """

    def fit(self, env: Env) -> None:
        """Take initial statistics, for example from random frames; called once, before `step`.

        Args:
            env: one env, seen through the transforms before this one; used for nothing else afterwards. The caller
                closes it.
        """

    def fitting_env(self, env: Env) -> Env:
        """Return an env that `fit` takes as `inner` sees it."""
        return env

    @abstractmethod
    def step(self, observation: Array, first: BoolArray) -> Array:
        """Return the transformed observations; called after the reset and after every step, before the policy acts.

        Args:
            observation: `[env, *shape]`, as the env or the transform before returned it.
            first: `[env]`, marks the observations that begin an episode.

        Returns:
            `[env, *shape]` of `observation_space`; the input, or an array that the next call may overwrite.
        """

    @abstractmethod
    def final(self, observation: Array, env_index: int) -> Array:
        """Return the transformed last observation of an episode; called before the `step` that follows.

        Args:
            observation: `[*shape]`.
            env_index: which env of the vector, as `step` counts them.

        Returns:
            `[*shape]` of `observation_space`.
        """

    def batch(self, batch: TensorDict) -> TensorDict:
        """Return the transformed batch; called once per iteration, before the hooks' `batch_process`.

        Args:
            batch: `[env, time]` on the run's device; the TensorDict is this iteration's own, its tensors are views that
                the next one overwrites. The ends of episodes must stay.

        Returns:
            A batch of the same size.
        """
        return batch

    @abstractmethod
    def frozen(self) -> Transform:
        """Return a copy for evaluation that shares no state and does not learn from what it sees."""

    def action_space(self, space: gymnasium.Space[Any]) -> gymnasium.Space[Any]:
        """Return the space of the actions that the policy takes, from that of the actions that `action` returns."""
        return space

    def action(self, action: Array) -> Array:
        """Return what the env gets for the actions of the policy; called before every step.

        Args:
            action: `[env, *shape]` of `action_space`; not to be changed.

        Returns:
            A new array `[env, *shape]` of the space that `action_space` was given.
        """
        return action

    def read_reward(self, reward: Array) -> None:
        """Take the rewards `[env]` of a step in, as the env gave them; before `final` and `step` of that step.

        Not to be changed, and another step may overwrite them.
        """

    def observation_module(self) -> torch.nn.Module:
        """Return a module for exported policies: from observations `[env, *shape]` to what `step` of a copy returns.

        For a transform that keeps nothing of an episode.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method observation_module")

    def memory_module(self) -> ModuleWithMemory:
        """Return the same module of a transform that keeps something of each episode."""
        raise NotImplementedError(f"{type(self).__name__} has no method memory_module")

    def action_module(self) -> torch.nn.Module:
        """Return a module for exported policies: from actions `[env, *shape]` to what `action` returns."""
        raise NotImplementedError(f"{type(self).__name__} has no method action_module")
