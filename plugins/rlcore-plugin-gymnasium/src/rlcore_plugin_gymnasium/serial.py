"""Gymnasium envs stepped one by one in this process; a new episode begins in the step that ends one."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import gymnasium
import numpy as np

from rlcore.envs import wrapper_for
from rlcore.errors import FROM_OUTSIDE, ConfigError, EnvError, StorageError, describe
from rlcore.types import EnvSpec, Heart, InfoListener, Step
from rlcore_plugin_gymnasium import goals
from rlcore_plugin_gymnasium.chain import layers, modules
from rlcore_plugin_gymnasium.checker import checked
from rlcore_plugin_gymnasium.held import held, large_attributes, shared
from rlcore_plugin_gymnasium.learning import warning_on
from rlcore_plugin_gymnasium.packing import packed
from rlcore_plugin_gymnasium.probe import NOT_TRIED, tried_out
from rlcore_plugin_gymnasium.quick_contains import answer_quickly
from rlcore_plugin_gymnasium.recording import LONGEST, PLAIN, Recording, Way
from rlcore_plugin_gymnasium.rendering import pictures, render_fps
from rlcore_plugin_gymnasium.step_form import StepForm
from rlcore_plugin_gymnasium.wrappers import constructed, wrapped

if TYPE_CHECKING:
    import numpy.typing as npt

    from rlcore_plugin_gymnasium.config import Config

log = logging.getLogger(__name__)

_AGAIN: Final = "when its episode is played again"
_NOTHING: Final[Mapping[int, Any]] = MappingProxyType({})


class SerialEnv:
    """A list of envs behind the interface of a vector env.

    Its state is a recording of each running episode, see `recording.py`.

    Args:
        config: which env, and how many.
        way: how their episodes are recorded, until they are tried out.
        heart: counts the steps that are none of training: those of playing again and of trying out.
    """

    def __init__(self, config: Config, way: Way = PLAIN, heart: Heart | None = None) -> None:
        self._config = config
        self.heart = Heart() if heart is None else heart
        made = _made(config)
        self._envs = [env for env, _ in made]
        self._limit = made[0][1]
        self._frame_skip = config.frame_skip
        first = self._envs[0]
        self.spec = EnvSpec(
            id=config.id,
            observation_space=first.observation_space,
            action_space=first.action_space,
            num_envs=config.num_envs,
            frame_skip=config.frame_skip,
            max_episode_steps=None if self._limit is None else -(-self._limit // config.frame_skip),
        )
        self.render_fps = render_fps(first.metadata) / config.frame_skip
        self._discrete = isinstance(first.action_space, gymnasium.spaces.Discrete)
        shape, dtype = first.observation_space.shape, first.observation_space.dtype
        if shape is None or dtype is None:
            raise ConfigError(
                f"[env] {config.id} observes {first.observation_space}, which is not one array; "
                f"{wrapper_for(first.observation_space)}"
            )
        self._observation = np.zeros((config.num_envs, *shape), dtype=dtype)
        self._reward = np.zeros(config.num_envs)
        self._terminated = np.zeros(config.num_envs, dtype=bool)
        self._truncated = np.zeros(config.num_envs, dtype=bool)
        # of a step that ends no episode: the same arrays with other numbers, and so the same record
        self._going_on = Step(self._observation, self._reward, self._terminated, self._truncated, _NOTHING, _NOTHING)
        self._longest = sys.maxsize if self._limit is None else self._limit
        self._ended = False
        self._is_shown = False
        self._ends: dict[int, Any] = {}  # pictures of the episodes that ended in the last step, once it is shown
        self._form = StepForm(shape, np.dtype(dtype))
        self._elapsed = [0] * config.num_envs
        self._closed = False
        self._asked = False
        self._reason: str | None = None
        self._listener: InfoListener | None = None
        self._record(way)

    def warn_of_learning(self) -> None:
        """Say which wrappers learn what the envs of evaluations will not know."""
        warning = warning_on(self._envs[0])
        if warning is not None:
            log.error("%s", warning)  # with --quiet too: what evaluations say of the policy is not so

    def reset(self, seed: int | None = None) -> npt.NDArray[Any]:
        """Reset every env, env `i` with `seed + i`."""
        self._ends.clear()
        for index in range(len(self._envs)):
            self._reset_one(index, None if seed is None else seed + index)
        return self._observation

    def begin(self) -> npt.NDArray[Any]:
        """Begin a new episode in every env, as after the end of one."""
        return self.reset()

    def step(self, action: npt.NDArray[Any]) -> Step:
        """Step every env; one whose episode ends is reset at once."""
        finals: dict[int, Any] | None = None
        infos: dict[int, Any] | None = None
        if self._ended:
            self._terminated[:] = self._truncated[:] = self._ended = False
            self._ends.clear()
        size, dtype, reward_type, terminated_type, truncated_type = self._form.fast
        observations, rewards, recorded = self._observation, self._reward, self._actions
        step_one = self._repeat if self._frame_skip > 1 else self._step_one
        if self._listener is not None:
            step_one = self._telling(step_one)
        own_actions = action.tolist() if self._discrete else action
        handed = own_actions if self._discrete else action.copy()  # an env may write into the action that it is given
        for index, own_action in enumerate(own_actions):
            observation, reward, terminated, truncated, info = step_one(index, handed[index])
            try:
                if (
                    observation.nbytes != size
                    or observation.dtype is not dtype
                    or type(reward) is not reward_type
                    or type(terminated) is not terminated_type
                    or type(truncated) is not truncated_type
                ):
                    raise AttributeError  # as of what is no array at all
            except AttributeError:
                observation, reward, terminated, truncated = self._fitting(
                    index, observation, reward, terminated, truncated
                )
            if terminated or truncated:
                finals, infos = finals or {}, infos or {}
                infos[index] = info
                finals[index] = self._form.copy(observation)  # `reset` may write into the same array
                if self._is_shown:
                    self._ends[index] = pictures([self._envs[index]], self.spec.id)[0]
                observation = self._reset_one(index)
                self._terminated[index], self._truncated[index], self._ended = terminated, truncated, True
            else:
                recorded[index].append(own_action if self._discrete else own_action.copy())
            observations[index] = observation
            rewards[index] = reward
        if finals is None or infos is None:
            return self._going_on
        return Step(self._observation, self._reward, self._terminated, self._truncated, finals, infos)

    def tell_infos(self, listener: InfoListener) -> None:
        """Hand over the infos of every reset and step; of an action that is repeated, those of its last repetition."""
        self._listener = listener

    def render(self, indices: Sequence[int] | None = None) -> npt.NDArray[Any]:
        """Return pictures of these envs, or of all, uint8 `[picture, height, width, 3]`; see `Env`."""
        self._is_shown = True
        chosen = range(len(self._envs)) if indices is None else indices
        running = iter(pictures([self._envs[index] for index in chosen if index not in self._ends], self.spec.id))
        return np.stack([self._ends[index] if index in self._ends else next(running) for index in chosen])

    def goal_outcome(self, achieved: npt.NDArray[Any], desired: npt.NDArray[Any]) -> goals.Outcome:
        """Return the rewards of reaching some goals where others were wanted, and whether that ends episodes.

        Raises:
            ConfigError: the env has no `compute_reward`.
        """
        return goals.outcome(self._envs[0], self.spec.id, achieved, desired)

    def close(self) -> None:
        """Close every env."""
        if not self._closed:
            self._closed = True
            for index, env in enumerate(self._envs):
                self._guarded(index, env.close)

    def checked(self) -> Iterator[tuple[str, str, str]]:
        """Yield what Gymnasium's own checker says of the environment without wrappers."""
        first, *self._envs = self._envs  # it is closed there
        return checked(first.unwrapped)

    def modules(self) -> Iterator[str]:
        """Yield the names of the modules that these envs are written in."""
        return modules(self._envs[0], self.spec.id)

    def inexact(self) -> str | None:
        """Return why the state of these envs cannot be saved, or None; tried out once, on other instances."""
        if not self._asked:
            self._asked = True
            way, self._reason = self._found_way()
            if way != self._way:
                self._record(way)
        if self._reason is not None:
            return f"env {self.spec.id!r} {self._reason}"
        if max(map(len, self._actions)) > LONGEST:
            return f"env {self.spec.id!r} is in an episode of more than {LONGEST:,} steps"
        if any(recording.too_much for recording in self._recordings):
            return f"env {self.spec.id!r} remembers more of earlier episodes than can be saved"
        return None

    def unrestored(self) -> str | None:
        """Return what the last `load_state_dict` could not bring back, or None."""
        lost = dict.fromkeys(name for recording in self._recordings for name in recording.lost)
        if not lost:
            return None
        return (
            f"env {self.spec.id!r} remembers what playing its episode again does not bring back, first seen at this "
            f"resume: {', '.join(lost)}"
        )

    def held(self) -> dict[str, str]:
        """Return hashes of what the first env holds, by attribute."""
        return held(self._envs[0], self._way.ignored)

    def large_attributes(self) -> set[str]:
        """Return the names of attributes that hold many values."""
        return large_attributes(self._envs[0])

    def shared(self) -> dict[str, str]:
        """Return hashes of what all instances share, by class or module and name."""
        return shared(self._envs[0])

    def state_dict(self) -> dict[str, Any]:
        """Return the recording of every running episode."""
        rows = zip(self._recordings, self._observation, strict=True)
        return {"envs": [recording.state_dict(row) for recording, row in rows]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Play every running episode again.

        Raises:
            EnvError: one ends elsewhere than before.
            StorageError: they are of envs in their own vector form.
        """
        if "envs" not in state:
            raise StorageError("the running episodes are of envs in their own vector form ([env] vectorization)")
        for index, (recording, saved) in enumerate(zip(self._recordings, state["envs"], strict=True)):
            self._elapsed[index] = 0
            self._guarded(index, recording.play, saved, partial(self._observation_after, index))
            self._observation[index] = saved["observation"]

    def _observation_after(self, index: int, action: Any) -> Any:
        self.heart.beats += 1
        return (self._repeat if self._frame_skip > 1 else self._step_one)(index, copy(action))[0]

    def _found_way(self) -> tuple[Way, str | None]:
        """Try the env out; return how its episodes are to be recorded, and why that is not exact, if it is not.

        Seeds are given to an env that needs them for its steps; what it remembers is taken of one that needs that.
        """
        if not self._config.try_out:
            return PLAIN, NOT_TRIED.why("")
        one = self._config.model_copy(update={"num_envs": 1})
        way, outcome = PLAIN, tried_out(lambda: SerialEnv(one, PLAIN, self.heart))
        if outcome.behaviour is not None and not outcome.is_final:
            seeded = tried_out(lambda: SerialEnv(one, Way(reseeded=True), self.heart))
            way, outcome = (Way(reseeded=True), seeded) if seeded.behaviour is None else (way, outcome)
        way = replace(way, ignored=outcome.ignored)
        if outcome.is_exact or outcome.shared or outcome.is_final:
            return way, outcome.why(_AGAIN)
        remembering = replace(way, remembers=True)
        again = tried_out(lambda: SerialEnv(one, remembering, self.heart))
        if not again.is_exact:
            return way, (outcome if again.behaviour is not None and outcome.behaviour is None else again).why(_AGAIN)
        return replace(remembering, ignored=way.ignored | again.ignored), None

    def _record(self, way: Way) -> None:
        self._way = way
        self._recordings = [Recording(env, way) for env in self._envs]
        self._actions = [recording.actions for recording in self._recordings]

    def _reset_one(self, index: int, seed: int | None = None) -> Any:
        observation = self._guarded(index, self._recordings[index].reset, seed)
        try:
            observation = self._form.observation(observation)
        except ValueError as error:
            raise self._blame(index, error) from None
        self._observation[index] = observation
        self._elapsed[index] = 0
        if self._listener is not None:
            self._listener(index, self._recordings[index].infos, True)
        return observation

    def _fitting(self, index: int, *returned: Any) -> tuple[Any, ...]:
        try:
            return self._form.fitting(*returned)
        except ValueError as error:
            raise self._blame(index, error) from None

    def _step_one(self, index: int, action: Any) -> tuple[Any, Any, bool, bool, Mapping[str, Any]]:
        try:
            observation, reward, terminated, truncated, info = self._envs[index].step(action)
        except FROM_OUTSIDE:
            raise
        except BaseException as error:  # an exit too
            raise self._blame(index, error) from error
        elapsed = self._elapsed[index] = self._elapsed[index] + 1
        if elapsed >= self._longest:
            truncated = True
        return observation, reward, terminated, truncated, info

    def _telling(self, step_one: Any) -> Any:
        """Return what steps one env and hands its infos over."""
        listener = self._listener
        assert listener is not None

        def told(index: int, action: Any) -> Any:
            returned = step_one(index, action)
            listener(index, returned[4], False)
            return returned

        return told

    def _repeat(self, index: int, action: Any) -> tuple[Any, Any, bool, bool, Mapping[str, Any]]:
        total = 0.0
        for _ in range(self._frame_skip):
            observation, reward, terminated, truncated, info = self._step_one(index, copy(action))
            total += reward
            if terminated or truncated:
                break
        return observation, total, terminated, truncated, info

    def _guarded(self, index: int, call: Any, *arguments: Any, **keywords: Any) -> Any:
        try:
            return call(*arguments, **keywords)
        except (*FROM_OUTSIDE, EnvError):
            raise
        except BaseException as error:  # an exit too
            raise self._blame(index, error) from error

    def _blame(self, index: int, error: BaseException) -> EnvError:
        kind, _, message = describe(error).partition(": ")
        return EnvError(
            f"env {self.spec.id!r}, number {index}, raised {kind} at step {self._elapsed[index]} of its episode: "
            f"{message}"
        )


def _made(config: Config) -> list[tuple[gymnasium.Env[Any, Any], int | None]]:
    """Make all envs, or none: where one cannot be made, those before it are closed.

    Raises:
        EnvError: the first one could be made, and another one could not.
    """
    with ExitStack() as opened:
        made = [_make(config)]
        opened.callback(made[0][0].close)
        while len(made) < config.num_envs:
            try:
                made.append(_make(config))
            except FROM_OUTSIDE:
                raise
            except BaseException as error:
                raise EnvError(
                    f"env {config.id!r}: {len(made)} can be made, and one more beside them cannot: {describe(error)}; "
                    f"where no more may exist, set num_envs = {len(made)} in [env], and in [evaluator]"
                ) from error
            opened.callback(made[-1][0].close)
        opened.pop_all()
    return made


def _make(config: Config) -> tuple[gymnasium.Env[Any, Any], int | None]:
    """Make one env, and return it with its step limit.

    The time limit and the order check that `gymnasium.make` wraps around an env are done here instead: each wrapper
    costs a Python call per step. Where the config names wrappers, these two stay inside of them, as in Gymnasium.
    """
    limit = {} if config.max_episode_steps is None else {"max_episode_steps": config.max_episode_steps}
    arguments = constructed(config.id, config.kwargs)
    if config.render_mode is not None:
        arguments["render_mode"] = config.render_mode
    env = gymnasium.make(config.id, disable_env_checker=True, **limit, **arguments)
    answer_quickly(env)
    steps: int | None = None
    if config.wrappers:
        env = wrapped(env, config.wrappers)
        limits = [layer._max_episode_steps for layer in layers(env) if isinstance(layer, gymnasium.wrappers.TimeLimit)]
        steps = min(limits, default=None)
    elif isinstance(env, gymnasium.wrappers.TimeLimit):
        steps, inner = env._max_episode_steps, env.env
        env = inner.env if isinstance(inner, gymnasium.wrappers.OrderEnforcing) else inner
    return packed(env, config.mask_key), steps
