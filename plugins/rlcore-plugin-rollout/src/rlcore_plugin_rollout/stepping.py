"""Stepping envs with a policy through one batch after another, with a record of each finished episode.

What collectors share, whether the envs are in this process or some of them in each of several.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from torch import Tensor

from rlcore.collectors import EpisodeCounter
from rlcore.envs import EpisodeStarts, MaskCheck, StepCheck, env_error, masks_actions, reward_readers, through_actions
from rlcore.errors import FROM_OUTSIDE, EnvError, PluginError, RlcoreError
from rlcore.state import check_array
from rlcore.types import Env, Episode, Foretelling, Heart, Step, Transform, offers
from rlcore_plugin_rollout.action_check import ActionCheck
from rlcore_plugin_rollout.batch_storage import BatchStorage
from rlcore_plugin_rollout.policy_state import Remembering
from rlcore_plugin_rollout.space_watch import SpaceWatch

if TYPE_CHECKING:
    from rlcore.types import Array, BoolArray, EnvSpec

_Infos = dict[tuple[int, int], Mapping[str, Any]]

_FEW_ROWS: Final = 4


class Acting(Protocol):
    """What steps need of a policy."""

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions `[env, *action]` on the CPU and what `describe` needs later."""
        ...

    def describe(self, parameters: Tensor, action: Tensor) -> Mapping[Any, Tensor]:
        """Return further entries of the batch `[time, env, ...]`; once per batch."""
        ...


class SteppedElsewhere(Protocol):
    """Envs whose steps are begun and waited for."""

    def begin_step(self, action: Array) -> None:
        """Let every env step."""
        ...

    def finish_step(self, action: Array) -> Step:
        """Return the step; the actions are those that it was begun with, or what a transform made them from."""
        ...


class EnvStepper:
    """Some envs in the middle of their episodes.

    Args:
        env: the envs.
        transforms: what the policy's observations go through.
        spec: of the envs, as the policy sees them.
        heart: counts every step.
        first_env: number of the first of these envs among all of the run.
        memory: of the policy that acts, where it has a state.
        elsewhere: the envs again, where others may act while they step; see `collecting`.
    """

    def __init__(
        self,
        env: Env,
        transforms: Sequence[Transform],
        spec: EnvSpec,
        heart: Heart,
        first_env: int = 0,
        memory: Remembering | None = None,
        elsewhere: SteppedElsewhere | None = None,
    ) -> None:
        num_envs = env.spec.num_envs
        self.env = env
        self._transforms = transforms
        self._reward_readers = reward_readers(transforms)
        self._spec = spec
        self._heart = heart
        self._first_env = first_env
        self._memory = memory
        self._elsewhere = elsewhere
        self._check = StepCheck(env.spec)
        self._seen_shape = (num_envs, *(spec.observation_space.shape or ()))
        self._watch = SpaceWatch(spec)
        self._check_actions = ActionCheck(spec)
        self._check_masks = MaskCheck(spec) if masks_actions(spec) else None
        self._episodes = EpisodeCounter(num_envs)
        self._starts = EpisodeStarts(env.spec)
        self._observation: Array | None = None

    @property
    def running(self) -> int:
        """How many episodes are in their middle."""
        return self._episodes.running

    def begin(self, seed: int, frame: int) -> None:
        """Begin an episode in every env; env `i` of the run with `seed + i`.

        Raises:
            EnvError: the reset fails.
        """
        try:
            observation = self._check.observation(self.env.reset(seed=seed + self._first_env))
        except FROM_OUTSIDE:
            raise
        except BaseException as error:  # an exit too: it is the env's error, and no end of the run
            raise self._env_error(error, "in its reset", frame) from error
        first = self._starts.reset()
        for transform in self._transforms:
            observation = transform.step(observation, first)
        self._observation = np.array(self._of_shape(observation, self._seen_shape))
        self._episodes.reset()
        if self._memory is not None:
            self._memory.begin()

    def collect(
        self,
        storage: BatchStorage,
        policy: Acting,
        noise: Tensor,
        frame: int,
        rows: Sequence[Tensor] | None = None,
    ) -> list[tuple[int, Episode]]:
        """Fill the storage of a batch, and return the episodes that ended in it, each with the step at which it did.

        They come in the order of those steps, and of the envs. To be called in torch's inference mode.

        Args:
            storage: of these envs.
            policy: gives actions of these envs, and describes them.
            noise: of each step, `[time, env, ...]`.
            frame: at which the batch begins, for messages.
            rows: the observations to act on, one tensor for each step; by default those of the storage.

        Raises:
            EnvError: an env fails, or a value is not finite.
        """
        ended_before = self._enter(storage)
        infos: _Infos = {}
        for _ in self._run(storage, policy, noise, frame, storage.rows if rows is None else rows, infos):
            pass
        return self._leave(storage, ended_before, frame, infos)

    def collecting(
        self, storage: BatchStorage, policy: Acting, noise: Tensor, frame: int, rows: Sequence[Tensor] | None = None
    ) -> Generator[None, None, list[tuple[int, Episode]]]:
        """Do what `collect` does, and hand over whenever the envs step, which are `SteppedElsewhere`."""
        ended_before = self._enter(storage)
        infos: _Infos = {}
        yield from self._run(storage, policy, noise, frame, storage.rows if rows is None else rows, infos)
        return self._leave(storage, ended_before, frame, infos)

    def _enter(self, storage: BatchStorage) -> BoolArray:
        """Begin a batch; return which envs ended an episode with the step before."""
        assert self._observation is not None
        storage.observation[0] = self._observation
        if self._memory is not None:
            self._memory.enter(storage)
        return self._starts.ended

    def _leave(
        self, storage: BatchStorage, ended_before: BoolArray, frame: int, infos: _Infos
    ) -> list[tuple[int, Episode]]:
        """End a batch whose steps are written, and return the episodes that ended in it."""
        storage.finish(ended_before)
        if self._memory is not None:
            self._memory.leave()
        self._check_finite(storage, frame)
        self._check_actions(storage.actions)
        if self._check_masks is not None and storage.actions is not None:
            self._check_masks(storage.observation[:-1], storage.actions, storage.mask, self._first_env, frame)
        if self._first_env == 0:  # of several processes one speaks for all
            self._watch.look(storage.next_observation)
        finished = self._episodes.take(storage.reward, storage.done, storage.mask)
        self._starts.ended = storage.done[-1].copy()
        self._observation = storage.observation[-1]
        return [
            (time, Episode(return_, length, self._first_env + index, infos.get((time, index), {})))
            for time, index, return_, length in finished
        ]

    def state_dict(self) -> dict[str, Any]:
        """Return the running episodes and the state of the envs; they have one, and have begun."""
        memory = {} if self._memory is None else {"memory": self._memory.state_dict()}
        return {
            **memory,
            "env": self.env.state_dict(),  # type: ignore[attr-defined]
            "observation": self._observation,
            "returns": self._episodes.returns,
            "lengths": self._episodes.lengths,
            "ended": self._starts.ended,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on with the saved episodes.

        Raises:
            StorageError: they are of other envs than these: another number, or other observations.
        """
        self._check_state(state)
        self.env.load_state_dict(state["env"])  # type: ignore[attr-defined]
        self._observation = np.array(state["observation"])
        self._episodes.go_on_from(state["returns"], state["lengths"])
        self._starts.ended = np.array(state["ended"])
        if self._memory is not None:
            self._memory.load_state_dict(state["memory"])

    def _check_state(self, state: Mapping[str, Any]) -> None:
        num_envs = self.env.spec.num_envs
        assert self._spec.observation_space.shape is not None
        observations = (num_envs, *self._spec.observation_space.shape)
        check_array("the latest observation", np.asarray(state["observation"]), observations, "[env], [[transform]]")
        for name in ("returns", "lengths", "ended"):
            check_array(name, np.asarray(state[name]), (num_envs,), "[env] num_envs")

    def _step_functions(self) -> tuple[Callable[[Array], None] | None, Callable[[Array], Step]]:
        """Return what begins a step, where envs step elsewhere, and what gives it."""
        step_envs = through_actions(self.env.step, self._transforms)
        if self._elsewhere is None:
            return None, step_envs
        return through_actions(self._elsewhere.begin_step, self._transforms), self._elsewhere.finish_step

    def _run(
        self,
        storage: BatchStorage,
        policy: Acting,
        noise: Tensor,
        frame: int,
        rows: Sequence[Tensor],
        infos: _Infos,
    ) -> Generator[None]:
        """Fill the storage and the infos of ended episodes; yield where envs step elsewhere."""
        act, heart, transformed = policy.act, self._heart, bool(self._transforms)  # read in every step
        observations, rewards = storage.observation, storage.reward
        terminations, truncations = storage.terminated, storage.truncated
        begin_step, step_envs = self._step_functions()
        is_foretold, foretold, rows_of_noise = _foretold(policy, noise, storage)
        parameters: list[Tensor] = []
        actions, has_parameters = storage.actions, False
        checked: tuple[Any, Any, Any, Any] = (None, None, None, None)
        for time, observation in enumerate(rows):
            if is_foretold[time]:
                acted = foretold[time]
            else:
                action, parameter = act(observation, rows_of_noise[time])
                acted = action.numpy()
                if actions is None:
                    actions = storage.actions_like(action)
                actions[time] = acted
                parameters.append(parameter)
                has_parameters = has_parameters or parameter is not action
            if begin_step is not None:
                begin_step(acted)
                yield
            try:
                step = step_envs(acted)
                following, reward, terminated, truncated, finals, last_infos = step
                checked_following, checked_reward, checked_terminated, checked_truncated = checked
                if (  # an array that was checked in an earlier step is the same array with other numbers
                    following is not checked_following
                    or reward is not checked_reward
                    or terminated is not checked_terminated
                    or truncated is not checked_truncated
                ):
                    step = self._check(step)
                    checked = following, reward, terminated, truncated = step[:4]
                elif finals:
                    step = self._check.with_finals(step)
                rewards[time], terminations[time], truncations[time] = reward, terminated, truncated
                if transformed:
                    following = self._transformed(storage, time, step)
                elif finals:
                    _keep(storage, time, step)
                observations[time + 1] = following
            except FROM_OUTSIDE:
                raise
            except BaseException as error:
                raise self._env_error(error, f"at step {time}", frame) from error
            heart.beats += 1
            if last_infos:
                _note(infos, time, last_infos)
        storage.describe_actions(parameters if has_parameters else None, policy.describe)

    def _transformed(self, storage: BatchStorage, time: int, step: Step) -> Array:
        """Return the observations of a step as the transforms leave them, and keep those that end episodes."""
        for read in self._reward_readers:
            read(step.reward)
        for index, final in step.final_observation.items():
            for transform in self._transforms:
                final = transform.final(final, index)
            storage.final[time, index] = self._of_shape(final, self._seen_shape[1:])
        first = self._starts.first(step)
        observation = step.observation
        for transform in self._transforms:
            observation = transform.step(observation, first)
        return self._of_shape(observation, self._seen_shape)

    def _of_shape(self, observation: Array, expected: tuple[int, ...]) -> Array:
        """Return what the transforms made of observations.

        Raises:
            PluginError: it has another shape than their `observation_space` says.
        """
        if observation.shape != expected:
            raise PluginError(
                f"the transforms returned observations of shape {observation.shape}; their observation_space says "
                f"{expected}"
            )
        return observation

    def _check_finite(self, storage: BatchStorage, frame: int) -> None:
        not_finite = storage.not_finite()
        if not_finite is not None:
            name, (time, index), value = not_finite
            raise EnvError(
                f"env {self._spec.id!r}: {name} of env {self._first_env + index} at step {time} of the batch that "
                f"began at frame {frame} is {value}; the batch is discarded. Repair the environment, or clip with a "
                "transform."
            )

    def _env_error(self, error: BaseException, where: str, frame: int) -> RlcoreError:
        return env_error(self._spec.id, f"{where} of the batch that began at frame {frame}", error, "the batch")


def _keep(storage: BatchStorage, time: int, step: Step) -> None:
    """Keep the last observations of the episodes that ended with a step."""
    for index, final in step.final_observation.items():
        storage.final[time, index] = np.array(final)


def _note(infos: _Infos, time: int, last: Mapping[int, Mapping[str, Any]]) -> None:
    """Note the infos of the episodes that ended with a step."""
    infos.update({(time, index): info for index, info in last.items()})


def _foretold(
    policy: Acting, noise: Tensor, storage: BatchStorage
) -> tuple[Sequence[bool], Sequence[Array], Sequence[Tensor]]:
    """Find the actions that are known before their observations, and store them.

    Args:
        policy: is asked where it is `Foretelling`.
        noise: `[time, env, ...]`.
        storage: takes their actions; those of the other steps follow.

    Returns:
        For each step whether its actions are known, actions where they are, and noise where they are not.
    """
    answer = policy.foretold(noise) if offers(policy, Foretelling) else None
    if answer is None:
        return [False] * len(noise), (), noise.unbind(0)
    actions, is_foretold = answer[0].numpy(), list(answer[1])
    places = storage.actions_like(answer[0][0]) if storage.actions is None else storage.actions
    places[:] = actions
    # to take all rows apart at once costs as much as to take a few of them
    return is_foretold, actions, noise.unbind(0) if is_foretold.count(False) > _FEW_ROWS else noise  # type: ignore[return-value]
