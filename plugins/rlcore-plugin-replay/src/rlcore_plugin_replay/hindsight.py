"""The replay buffer `hindsight`, for envs with goals: samples get goals that their episode reached later."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, cast

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from rlcore.buffers import Minibatch
from rlcore.envs import Packed
from rlcore.errors import ConfigError, RlcoreError
from rlcore.types import Context, Env, Key, offers
from rlcore_plugin_replay.base import INDEX, ReplayConfig
from rlcore_plugin_replay.buffer import ReplayBuffer
from rlcore_plugin_replay.goal_episodes import GoalEpisodes
from rlcore_plugin_replay.n_step import DONE, REWARD, STEPS
from rlcore_plugin_replay.packing import Batch
from rlcore_plugin_replay.stacks import FOLLOWING, OBSERVATION

if TYPE_CHECKING:
    from tensordict import TensorDict

    from rlcore.types import Array, BoolArray, CollectedBatch

ACHIEVED: Final = "achieved_goal"
DESIRED: Final = "desired_goal"
TERMINATED: Final[Key] = ("next", "terminated")
TRUNCATED: Final[Key] = ("next", "truncated")
# the samples with another goal: a slice of the first ones, or int64 `[row]`
Chosen: TypeAlias = "slice | Array"
_USE: Final = "[buffer] use = 'replay:hindsight'"


class GoalEnv(Protocol):
    """An env that computes rewards from an achieved and a desired goal.

    The vector envs of rlcore-plugin-gymnasium do, where their env has a `compute_reward`.
    """

    def goal_outcome(self, achieved: Array, desired: Array) -> tuple[Array, BoolArray | None]:
        """Return the rewards of steps for other goals; the env stays as it is.

        Args:
            achieved: `[row, *goal]`, the leaf `achieved_goal` of the observation after each step.
            desired: `[row, *goal]`, the goal of each.

        Returns:
            The rewards `[row]`, and whether each step terminates the episode; None where goals do not decide it.

        Raises:
            ConfigError: the env has no such goals.
        """
        ...


class HindsightReplayBuffer(ReplayBuffer):
    """Samples transitions, most of them with a goal that their episode reached later (Andrychowicz et al., 2017).

    As in hindsight experience replay (arXiv 1707.01495, section 3.3): of `goals + 1` samples, `goals` have another goal
    in the leaf `desired_goal` of both observations, with the reward and the end that the env computes for it. Rows
    hold the collected transitions; goals are chosen at each sample.

    With `n_steps` a sample joins up to so many steps of its episode, with the rewards for its goal, up to the step that
    ends the episode for that goal (Yang et al., 2021, arXiv 2102.12962, section 4). The latest steps of a running
    episode join as many steps as there are.
    """

    class Config(ReplayConfig):
        """Keys of `[buffer]`."""

        goals: int = Field(4, ge=0, description="samples with another goal for each that has its own")
        strategy: Literal["future", "final"] = Field(
            "future", description="another goal is reached at a random later step of the episode, or at its last one"
        )

    _config: Config  # type: ignore[assignment]  # which has keys of stacks too

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__(config, context)
        self.takes_some_envs = False
        self._space = _space_of(context)
        self._env = _goal_env(context)
        self._episodes = GoalEpisodes(config.capacity)
        self._checked = False

    def add(self, batch: TensorDict | CollectedBatch) -> None:
        """Copy the valid steps of a batch `[env, time]`.

        Raises:
            RlcoreError: most rewards of the first batch differ from those that the env computes for its goals.
        """
        begin = self._ring.written
        super().add(batch)
        rows = Batch.of(batch)
        done = rows.columns[DONE].reshape(rows.size).numpy(force=True)
        valid = np.ones_like(done) if rows.mask is None else rows.mask.reshape(rows.size).numpy(force=True)
        self._episodes.add(done, valid, begin)
        if not self._checked and len(self):
            self._check_rewards()

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the replay buffer and the episodes."""
        state = super().state_dict()
        return {**state, "episodes": self._episodes.state_dict()} if self._saves else state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state.

        Raises:
            StorageError: as for `ReplayBuffer`.
            RlcoreError: the checkpoint has transitions and no episodes, as of another buffer.
        """
        if "ring" in state and "episodes" not in state:
            raise RlcoreError(f"{_USE}: the checkpoint is of a buffer without episodes; begin with --fresh buffer")
        super().load_state_dict(state)
        self._episodes = GoalEpisodes(self._config.capacity)
        if "episodes" in state:
            self._episodes.load_state_dict(state["episodes"])

    def forget_episodes(self) -> None:
        """End the running episodes, as the collector begins new ones."""
        super().forget_episodes()
        self._episodes.end_all()

    @property
    def _joined_steps(self) -> int:
        return 1  # rows are single steps: how many are joined depends on the goal of a sample

    def _draw(self, size: int) -> Minibatch:
        minibatch = super()._draw(size)
        count = size * self._config.goals // (self._config.goals + 1)
        chosen = self._chosen(size, count)
        places = minibatch[INDEX].numpy(force=True)
        reached = self._reached(places[chosen]) if count else None
        if self._config.n_steps > 1:
            self._join(minibatch, places, chosen, reached)
        elif reached is not None:
            achieved = self._space.tensor(minibatch[FOLLOWING], ACHIEVED)[chosen]
            rewards, ends = self._outcome(achieved, reached)
            _set(minibatch[REWARD], rewards, chosen)
            if ends is not None:
                _set(minibatch[TERMINATED], ends, chosen)
                _set(minibatch[DONE], ends | _flat(minibatch[TRUNCATED])[chosen], chosen)
        if reached is not None:
            for key in (OBSERVATION, FOLLOWING):
                self._space.tensor(minibatch[key], DESIRED)[chosen] = reached.to(minibatch[key].device)
        return minibatch

    def _chosen(self, size: int, count: int) -> Chosen:
        """Return the samples with another goal."""
        # the first ones, as samples are in random order
        return slice(count)

    def _reached(self, places: Array) -> Tensor:
        """Return goals `[row, *goal]` that episodes reached at rows `[row]` or later."""
        uniform = None
        if self._config.strategy == "future":
            drawn = torch.rand(len(places), generator=self._generator, device=self._device, dtype=torch.float64)
            uniform = drawn.numpy(force=True)
        return self._space.tensor(self._entries(self._episodes.later(places, uniform))(FOLLOWING), ACHIEVED)

    def _join(self, minibatch: Minibatch, places: Array, chosen: Chosen, reached: Tensor | None) -> None:
        """Join the step of each sample with the next ones, up to the end for its goal."""
        steps = self._config.n_steps
        rows, count = self._episodes.following(places, steps)
        read = self._entries(rows.reshape(-1))
        reward, terminated, truncated, done = (
            _flat(read(key)).reshape(rows.shape) for key in (REWARD, TERMINATED, TRUNCATED, DONE)
        )
        if reached is not None:
            achieved = self._space.tensor(read(FOLLOWING), ACHIEVED)
            achieved = achieved.reshape(steps, -1, *achieved.shape[1:])[:, chosen]
            rewards, ends = self._outcome(
                achieved.flatten(0, 1), reached.repeat(steps, *(1 for _ in reached.shape[1:]))
            )
            reward[:, chosen] = rewards.reshape(steps, -1)
            if ends is not None:
                terminated[:, chosen] = ends.reshape(steps, -1)
                done[:, chosen] = terminated[:, chosen] | truncated[:, chosen]
        total, joined = joined_rewards(reward, done, count, self._config.gamma)
        whole, last = slice(None), (joined - 1, np.arange(len(places)))
        read = self._entries(rows[last])
        for key in minibatch.keys():  # noqa: SIM118  # of entries that nobody read yet too
            if isinstance(key, tuple) and key[0] == "next":
                minibatch[key] = read(key).to(self._context.device)
        minibatch[STEPS] = torch.from_numpy(joined[:, np.newaxis]).to(self._context.device)
        _set(minibatch[REWARD], total, whole)
        _set(minibatch[TERMINATED], terminated[last], whole)
        _set(minibatch[DONE], done[last], whole)

    def _entries(self, places: Array) -> Callable[[Key], Tensor]:
        """Return a function from a key to that entry of the rows at places `[row]`."""
        layout = self._ring.layout
        assert layout is not None
        return layout.reader(self._ring.rows(torch.from_numpy(places).to(self._device)))

    def _outcome(self, achieved: Tensor, desired: Tensor) -> tuple[Array, Array | None]:
        return self._env.goal_outcome(achieved.numpy(force=True), desired.numpy(force=True))

    def _check_rewards(self) -> None:
        """Compare the first collected rewards with those that the env computes for their goals.

        Raises:
            RlcoreError: most of them differ.
        """
        self._checked = True
        entries = self._gathered(torch.arange(min(len(self), 100), device=self._device))
        leaves = self._space.tensors(entries[FOLLOWING])
        of_env, _ = self._outcome(leaves[ACHIEVED], leaves[DESIRED])
        collected = entries[REWARD].reshape(-1).numpy(force=True)
        wrong = ~np.isclose(of_env, collected, rtol=1e-3, atol=1e-5)
        if 2 * wrong.sum() > len(collected):
            first = int(wrong.argmax())
            raise RlcoreError(
                f"{_USE}: a reward of {collected[first]:g} was collected where the env gives {of_env[first]:g} for "
                "that goal; rewards of other goals would not be of that kind. Leave out what changes rewards: "
                "transforms, hooks and wrappers"
            )


def joined_rewards(reward: Array, done: BoolArray, count: Array, gamma: float) -> tuple[Array, Array]:
    """Return the discounted sums of rewards up to the end of the episode, and the number of their steps.

    Args:
        reward: `[step, row]`.
        done: `[step, row]`, whether the episode ends with a step.
        count: `[row]`, how many steps there are at most.
        gamma: the discount.

    Returns:
        Rewards `[row]`, in double precision, and steps int64 `[row]`.
    """
    steps = np.arange(len(reward))[:, np.newaxis]
    is_over = np.zeros_like(done)
    is_over[1:] = np.logical_or.accumulate(done[:-1], axis=0)
    counts = ~is_over & (steps < count)
    return (gamma**steps * counts * reward.astype(np.float64)).sum(0), counts.sum(0)


def _flat(entry: Tensor) -> Array:
    """Return a copy of an entry `[row, 1]` as an array `[row]`."""
    return entry.reshape(-1).numpy(force=True).copy()


def _set(entry: Tensor, values: Array, chosen: Chosen) -> None:
    """Write values `[row]` into rows of an entry `[sample, 1]`."""
    entry[chosen, 0] = torch.from_numpy(values).to(entry)


def _space_of(context: Context) -> Packed:
    """Return the space of the observations, which must have goals.

    Raises:
        ConfigError: it has none, or a transform changes them.
    """
    spec = context.env_spec
    space = spec.observation_space
    if not isinstance(space, Packed) or not {ACHIEVED, DESIRED} <= set(space.leaves):
        raise ConfigError(
            f"{_USE} needs observations with the leaves {ACHIEVED} and {DESIRED}, not {space}; the models flatten "
            "them, so leave out wrappers and transforms that do"
        )
    here, there = space.leaves[ACHIEVED], space.leaves[DESIRED]
    if (here.shape, space.dtypes[ACHIEVED]) != (there.shape, space.dtypes[DESIRED]):
        raise ConfigError(f"{_USE}: the {ACHIEVED} is {here} and the {DESIRED} {there}; they must be of one form")
    env_space = context.env.spec.observation_space
    if not isinstance(env_space, Packed) or any(
        env_space.leaves[name] != space.leaves[name] for name in (ACHIEVED, DESIRED)
    ):
        raise ConfigError(f"{_USE}: a [[transform]] changes the goals, of which the env then knows no rewards")
    if spec.frame_skip > 1:
        raise ConfigError(f"{_USE} needs the reward of one step, not a sum over several: [env] frame_skip = 1")
    return space


def _goal_env(context: Context) -> GoalEnv:
    """Return an env of the buffer, which computes rewards for goals.

    Raises:
        ConfigError: the env computes none.
    """
    env: Env = context.make_env_for("hindsight", num_envs=1)
    space = cast(Packed, env.spec.observation_space)
    if not offers(env, GoalEnv):
        raise ConfigError(f"{_USE}: {env.spec.id} has no goal_outcome(achieved, desired), which says what a goal gives")
    leaves = space.arrays(space.rows(2))
    env.goal_outcome(leaves[ACHIEVED], leaves[DESIRED])  # an env without goals says so before the first frame
    return env
