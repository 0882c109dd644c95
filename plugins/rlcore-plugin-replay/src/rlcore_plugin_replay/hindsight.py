"""The replay buffer for envs with goals: transitions as if the goal had been one that was reached later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Self, cast

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor

from rlcore.buffers import Minibatch
from rlcore.envs import Packed
from rlcore.errors import ConfigError, RlcoreError
from rlcore.types import Context, Env, offers
from rlcore_plugin_replay.base import ReplayConfig
from rlcore_plugin_replay.buffer import ReplayBuffer
from rlcore_plugin_replay.goal_episodes import GoalEpisodes
from rlcore_plugin_replay.n_step import DONE, REWARD
from rlcore_plugin_replay.packing import Batch
from rlcore_plugin_replay.stacks import FOLLOWING, OBSERVATION

if TYPE_CHECKING:
    from tensordict import TensorDict

    from rlcore.types import Array, BoolArray, CollectedBatch

ACHIEVED: Final = "achieved_goal"
DESIRED: Final = "desired_goal"
_USE: Final = "[buffer] use = 'replay:hindsight'"


class GoalEnv(Protocol):
    """An env whose rewards follow from a goal that was reached and one that was wanted.

    The vector envs of rlcore-plugin-gymnasium are, where their env has a `compute_reward`.
    """

    def goal_outcome(self, achieved: Array, desired: Array) -> tuple[Array, BoolArray | None]:
        """Return what steps give that lead to these goals, where those were wanted. Changes nothing.

        Args:
            achieved: `[row, *goal]`, the leaf `achieved_goal` of the observation after each step.
            desired: `[row, *goal]`, the goal of each.

        Returns:
            The rewards `[row]`, and whether each step terminates the episode; None where goals say nothing of that.

        Raises:
            ConfigError: the env has no such goals.
        """
        ...


class HindsightReplayBuffer(ReplayBuffer):
    """Samples transitions, most of them with a goal that their episode reached later (Andrychowicz et al., 2017).

    As in hindsight experience replay (arXiv 1707.01495, section 3.3): of `goals + 1` samples, `goals` have another goal
    in the leaf `desired_goal` of both observations, and the reward, and the end, that the env gives for it. The rows
    hold what was collected; goals are chosen when they are sampled.
    """

    class Config(ReplayConfig):
        """Size, use, and which goals."""

        goals: int = Field(4, ge=0, description="samples with another goal for each that has its own")
        strategy: Literal["future", "final"] = Field(
            "future", description="another goal is reached at a random later step of the episode, or at its last one"
        )

        @model_validator(mode="after")
        def _are_single_steps(self) -> Self:
            if self.n_steps > 1:
                raise ValueError("hindsight is of single steps, whose reward one goal decides: n_steps = 1")
            return self

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
            RlcoreError: most rewards of the first batch are not those that the env gives for its goals.
        """
        before = self._ring.written
        super().add(batch)
        taken = Batch.of(batch)
        done = taken.columns[DONE].reshape(taken.size).numpy(force=True)
        valid = np.ones_like(done) if taken.mask is None else taken.mask.reshape(taken.size).numpy(force=True)
        self._episodes.add(done, valid, before)
        if not self._checked and len(self):
            self._check_rewards()

    def state_dict(self) -> dict[str, Any]:
        """Return what every replay buffer saves, and the episodes."""
        state = super().state_dict()
        return {**state, "episodes": self._episodes.state_dict()} if self._saves else state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take it back.

        Raises:
            StorageError: as of every replay buffer.
            RlcoreError: the transitions were kept by a buffer that knew no episodes.
        """
        if "ring" in state and "episodes" not in state:
            raise RlcoreError(f"{_USE}: the checkpoint is of a buffer without episodes; begin with --fresh buffer")
        super().load_state_dict(state)
        self._episodes = GoalEpisodes(self._config.capacity)
        if "episodes" in state:
            self._episodes.load_state_dict(state["episodes"])

    def forget_episodes(self) -> None:
        """Let the running episodes end: the collector begins new ones."""
        super().forget_episodes()
        self._episodes.end_all()

    def _draw(self, size: int) -> Minibatch:
        minibatch = super()._draw(size)
        count = size * self._config.goals // (self._config.goals + 1)
        if count:
            self._relabel(minibatch, count)
        return minibatch

    def _relabel(self, minibatch: Minibatch, count: int) -> None:
        """Give the first samples other goals; which transitions these are is random already."""
        places = minibatch["index"][:count].numpy(force=True)
        uniform = None
        if self._config.strategy == "future":
            drawn = torch.rand(count, generator=self._generator, device=self._device, dtype=torch.float64)
            uniform = drawn.numpy(force=True)
        rows = torch.from_numpy(self._episodes.later(places, uniform)).to(self._device)
        layout = self._ring.layout
        assert layout is not None
        reached = self._space.tensor(layout.view(self._ring.rows(rows), FOLLOWING), ACHIEVED)
        for key in (OBSERVATION, FOLLOWING):
            self._space.tensor(minibatch[key][:count], DESIRED)[:] = reached.to(minibatch[key].device)
        achieved = self._space.tensor(minibatch[FOLLOWING][:count], ACHIEVED)
        rewards, ends = self._outcome(achieved, reached)
        _set(minibatch[REWARD], rewards)
        if ends is not None:
            _set(minibatch["next", "terminated"], ends)
            _set(minibatch[DONE], ends | minibatch["next", "truncated"][:count].reshape(-1).numpy(force=True))

    def _outcome(self, achieved: Tensor, desired: Tensor) -> tuple[Array, Array | None]:
        return self._env.goal_outcome(achieved.numpy(force=True), desired.numpy(force=True))

    def _check_rewards(self) -> None:
        """Compare the rewards that were collected first with those of the env for their goals.

        Raises:
            RlcoreError: most of them are others.
        """
        self._checked = True
        entries = self._gathered(torch.arange(min(len(self), 100), device=self._device))
        leaves = self._space.tensors(entries[FOLLOWING])
        given, _ = self._outcome(leaves[ACHIEVED], leaves[DESIRED])
        seen = entries[REWARD].reshape(-1).numpy(force=True)
        wrong = ~np.isclose(given, seen, rtol=1e-3, atol=1e-5)
        if 2 * wrong.sum() > len(seen):
            first = int(wrong.argmax())
            raise RlcoreError(
                f"{_USE}: a reward of {seen[first]:g} was collected where the env gives {given[first]:g} for that "
                "goal; rewards of other goals would not be of that kind. Leave out what changes rewards: transforms, "
                "hooks and wrappers"
            )


def _set(entry: Tensor, values: Array) -> None:
    """Write values `[row]` over the first rows of an entry `[sample, 1]`."""
    entry[: len(values), 0] = torch.from_numpy(values).to(entry)


def _space_of(context: Context) -> Packed:
    """Return the space of the observations, which must have goals.

    Raises:
        ConfigError: it has none, or they are not those of the env.
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
    own = context.env.spec.observation_space
    if not isinstance(own, Packed) or any(own.leaves[name] != space.leaves[name] for name in (ACHIEVED, DESIRED)):
        raise ConfigError(f"{_USE}: a [[transform]] changes the goals, of which the env then knows no rewards")
    if spec.frame_skip > 1:
        raise ConfigError(f"{_USE} needs the reward of one step, not a sum over several: [env] frame_skip = 1")
    return space


def _goal_env(context: Context) -> GoalEnv:
    """Return an env of its own that is asked for rewards.

    Raises:
        ConfigError: it gives none for goals.
    """
    env: Env = context.make_env_for("hindsight", num_envs=1)
    space = cast(Packed, env.spec.observation_space)
    if not offers(env, GoalEnv):
        raise ConfigError(f"{_USE}: {env.spec.id} has no goal_outcome(achieved, desired), which says what a goal gives")
    leaves = space.arrays(space.rows(2))
    env.goal_outcome(leaves[ACHIEVED], leaves[DESIRED])  # an env without goals says so before the first frame
    return env
