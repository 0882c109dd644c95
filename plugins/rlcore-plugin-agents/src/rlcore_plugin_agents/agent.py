"""The agent: a trained policy together with the transforms that it was trained behind, all of it frozen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from rlcore.envs import (
    ActionCheck,
    Carrying,
    Packed,
    Playing,
    as_numbers,
    changes_observations,
    observation_dtype,
    reward_readers,
    transformed_spec,
)
from rlcore.errors import ArgumentTypeError, ConfigError, MissingPluginError
from rlcore.plugins import lend
from rlcore.types import EnvSpec, Policy, StatefulPolicy, Transform, defines, offers

if TYPE_CHECKING:
    from rlcore.types import Array, BoolArray


class Agent:
    """Chooses actions for raw observations, as the env gives them; `rlcore.load_agent` makes one.

    Where `remembers` is true, the actions follow from earlier observations of the episode too: call `reset` whenever
    an episode begins.

    Args:
        spec: of the env, before any transform.
        transforms: in the order in which observations pass; frozen copies are used.
        policy: of the model.
        device: of the model.
        seed: of the actions that are sampled.
        frames: training frames of the weights.
        dtype: of the observations that the policy takes; default: as in training.
        network: the model of the policy.

    Attributes:
        observation_space: of one env, as it is.
        action_space: of one env, as it is.
        env_id: name of the environment.
        frame_skip: how often each action is to be repeated, as the env of the training did.
        frames: training frames of the weights.
        spec: of the env, before any transform.
        policy: takes observations as the transforms leave them.
        network: the model of the policy, with all its parts; None of an exported program.
        remembers: whether a transform keeps something of the running episodes, as a frame stack does, or the policy.
    """

    def __init__(
        self,
        spec: EnvSpec,
        transforms: Sequence[Transform],
        policy: Policy,
        device: str | torch.device = "cpu",
        seed: int = 0,
        frames: int = 0,
        dtype: Any = None,
        network: Any = None,
    ) -> None:
        self.observation_space, self.action_space = spec.observation_space, spec.action_space
        self.env_id, self.frame_skip, self.frames = spec.id, spec.frame_skip, frames
        self._shape: tuple[int, ...] = spec.observation_space.shape or ()
        self._raw_dtype = np.dtype(spec.observation_space.dtype)
        policy_spec = spec
        for transform in transforms:
            policy_spec = transformed_spec(policy_spec, transform)
        self._check = ActionCheck(policy_spec)
        self._seen_dtype = dtype or observation_dtype(policy_spec.observation_space)
        self._is_stateful = offers(policy, StatefulPolicy)
        self.remembers = self._is_stateful or any(
            changes_observations(transform) and defines(transform, Transform.forget_episodes)
            for transform in transforms
        )
        self._carrying: Carrying | None = None
        self.spec, self.policy, self.network = spec, policy, network
        self._device = torch.device(device)
        self._generator = torch.Generator(self._device).manual_seed(seed)
        self._first: BoolArray | None = None  # [env], which episodes begin with the next observation
        self._begin(transforms)
        policy.refresh()

    def __repr__(self) -> str:
        return f"Agent({self.env_id!r}, trained for {self.frames:,} frames)"

    def _repr_html_(self) -> str | None:
        """Return the picture that a notebook shows; None without its plugin, for the text instead."""
        try:
            return str(lend("rlcore_plugin_agents", "agent_html")(self))
        except MissingPluginError:
            return None

    def act(self, observation: Any, deterministic: bool = True, reward: Any = None) -> Array:
        """Return the action for an observation, or the actions for a batch of observations of several envs.

        Args:
            observation: `[*shape]` or `[env, *shape]` of `observation_space`, raw; or such arrays in a
                dict by leaf, or as the env nests them.
            deterministic: the likeliest action, as evaluations take it; else one that is sampled, as in training.
            reward: of the step that led to the observation, a number or `[env]`; only an agent that `reads_rewards` has
                to be told, and not where episodes begin.

        Returns:
            `[*action]` or `[env, *action]`, what the env takes: scaled and clipped as in training. A new array.

        Raises:
            ConfigError: the observation has another shape or other numbers, or the number of envs changed in the
                middle of episodes, or the reward is missing.
            PluginError: the policy gave an action outside of its space.
        """
        batch, single = self._batch(observation)
        first = self._beginning(len(batch))
        self._read(reward, first)
        with torch.inference_mode():
            inputs = torch.tensor(self._seen(batch, first), device=self._device)
            policy = self._carried(first) if self._is_stateful else self.policy
            action = (policy.mode(inputs) if deterministic else self._sampled(policy, inputs)).cpu().numpy()
        self._check(action)
        for change in self._action_changes:
            action = change(action)
        return action[0] if single else action

    def reset(self, done: Any = None) -> None:
        """Say that episodes begin with the next observations; without memory, `remembers`, there is no need to.

        Args:
            done: `[env]`, true where an episode ended; None for all envs, whose number may change then.

        Raises:
            ConfigError: `done` has another form.
        """
        if done is None or self._first is None:
            self._begin(self._transforms)
            return
        mask = np.asarray(done)
        if mask.dtype != bool or mask.shape not in ((), self._first.shape):
            raise ConfigError(
                f"agent.reset: done is {mask.dtype} {list(mask.shape)}; pass true or false for each of the "
                f"{len(self._first)} envs, or nothing for all"
            )
        self._first = self._first | mask

    @property
    def reads_rewards(self) -> bool:
        """Whether a transform makes the last reward a part of observations, so that `act` has to be told it."""
        return bool(self._reward_readers)

    @property
    def transforms(self) -> list[Transform]:
        """The transforms, frozen, in the order in which observations pass."""
        return list(self._transforms)

    def _begin(self, transforms: Sequence[Transform]) -> None:
        """Take copies of transforms that have seen no episode."""
        self._transforms = [transform.frozen() for transform in transforms]
        self._action_changes = [
            transform.action for transform in reversed(self._transforms) if acts_on_actions(transform)
        ]
        self._reward_readers = reward_readers(self._transforms)
        self._first = None

    def _read(self, reward: Any, first: BoolArray) -> None:
        """Let the transforms that want it know the reward of the step before."""
        if not self.reads_rewards or (reward is None and first.all()):
            return
        rewards = np.zeros(0) if reward is None else np.atleast_1d(np.asarray(reward, dtype=np.float64))
        if rewards.shape != first.shape or not np.isfinite(rewards).all():
            raise ConfigError(
                "agent.act: a transform makes the last reward a part of the observation; pass the reward of each of "
                f"the {len(first)} envs, as act(observation, reward=reward)"
            )
        for read in self._reward_readers:
            read(rewards)

    def _packed(self, observation: Any) -> Array:
        space = self.observation_space
        if not isinstance(space, Packed):
            raise ConfigError(f"agent.act: the observation is a dict; expected one of {space}")
        try:
            return space.pack(observation)
        except ValueError as error:
            raise ConfigError(f"agent.act: {error}") from None

    def _batch(self, observation: Any) -> tuple[Array, bool]:
        """Return observations `[env, *shape]` in the dtype of the space, and whether there was one alone."""
        of_leaves = isinstance(observation, tuple) and isinstance(self.observation_space, Packed)
        if of_leaves or isinstance(observation, Mapping):
            observation = self._packed(observation)
        try:
            shape = np.shape(observation)
        except ValueError:
            more = "; env.reset() and env.step() return more than the observation" * isinstance(observation, tuple)
            raise ConfigError(f"agent.act: the observation is no array of numbers{more}") from None
        single = shape == self._shape
        if not single and (shape[1:] != self._shape or len(shape) != len(self._shape) + 1 or not shape[0]):
            space = self.observation_space
            expected = space if isinstance(space, Packed) else list(self._shape)
            raise ConfigError(
                f"agent.act: an observation of shape {list(shape)}; env {self.env_id!r} gives {expected}: "
                "pass one as the env gives it, or a batch with the envs in front"
            )
        try:
            numbers = as_numbers(observation, shape, self._raw_dtype).astype(self._raw_dtype, copy=False)
        except (TypeError, ValueError) as error:
            raise ArgumentTypeError(
                f"agent.act: {error}; pass observations as env {self.env_id!r} gives them"
            ) from error
        if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
            raise ConfigError("agent.act: the observation is not finite")
        return (numbers[None] if single else numbers), single

    def _beginning(self, count: int) -> BoolArray:
        """Return which of so many episodes begin with these observations, `[env]`."""
        first = self._first
        if first is None or (len(first) != count and not self.remembers):
            return np.ones(count, dtype=bool)
        if len(first) != count:
            raise ConfigError(
                f"agent.act: {count} observations after {len(first)}, and the agent remembers earlier ones of each "
                "episode; call agent.reset() before another number of envs"
            )
        return first

    def _seen(self, observation: Array, first: BoolArray) -> Array:
        """Return what the policy sees, after all transforms."""
        for transform in self._transforms:
            observation = transform.step(observation, first)
        self._first = np.zeros(len(first), dtype=bool)
        return np.asarray(observation, dtype=self._seen_dtype)

    def _carried(self, first: BoolArray) -> Carrying:
        """Return the policy with what it remembers of the running episodes."""
        if self._carrying is None or first.all():  # their number may be another one
            self._carrying = Carrying(self.policy, len(first))
        else:
            self._carrying.begin(first)
        return self._carrying

    def _sampled(self, policy: Playing, observation: torch.Tensor) -> torch.Tensor:
        noise = self.policy.draw(1, len(observation), self._generator)
        return policy.act(observation, noise[0])[0]


def acts_on_actions(transform: Transform) -> bool:
    """Return whether a transform changes actions."""
    return defines(transform, Transform.action)
