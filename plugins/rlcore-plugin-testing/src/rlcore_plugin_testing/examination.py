"""Whether envs can be trained on: form, ends, seeds, saved state, infos and speed, each found out by random steps."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from rlcore.envs.action_masks import keeping_to_masks, random_actions
from rlcore.envs.checks import inexact_env
from rlcore.envs.packed import Packed
from rlcore.errors import FROM_OUTSIDE, describe
from rlcore.types import Env, Step
from rlcore_plugin_testing.env_specs import check_env_specs

if TYPE_CHECKING:
    from rlcore.types import Array

_SEED: Final = 0
_SECONDS: Final = 1.0
# steps before the state is taken, and after it
_BEFORE: Final = 17


@dataclass(frozen=True)
class Finding:
    """What was found out about one thing.

    Attributes:
        kind: `problem` keeps a run from being right; `advice` does not.
        about: what was looked at.
        text: what was found.
    """

    kind: Literal["fine", "advice", "problem"]
    about: str
    text: str


@dataclass(frozen=True)
class Played:
    """What random steps gave.

    Attributes:
        lengths: of the episodes that ended.
        terminated: how many ended of their own.
        infos: names in the infos of their last steps, with an example of each.
        rewards: least and largest.
    """

    lengths: list[int]
    terminated: int
    infos: dict[str, Any]
    rewards: tuple[float, float]


def examine(make: Callable[[], Env], steps: int) -> Iterator[Finding]:
    """Yield what is found; after a problem of form nothing else can be found out.

    Args:
        make: returns envs, new ones each time.
        steps: how many random steps are taken.
    """
    env = make()
    try:
        try:
            check_env_specs(env, steps, _SEED)
        except FROM_OUTSIDE:
            raise
        except Exception as error:
            yield Finding("problem", "form", describe(error))
            return
        yield Finding("fine", "form", f"{steps:,} random steps, twice: shapes, dtypes, bounds and ends are as declared")
        yield Finding("fine", "seeds", f"reset(seed={_SEED}) and equal actions give equal steps, to the bit")
        yield _dtype(env)
        played = _play(env, steps)
        yield from _ends(env, played, steps)
        yield _infos(played)
        speed = _speed(env)
        why = inexact_env(env)
        plan = list(islice(random_actions(env.spec, _SEED), _BEFORE + min(steps, 200)))
        saved, following = ({}, []) if why else _saved(env, plan)
    finally:
        env.close()  # before the next one is made: a simulator may be there once
    yield (
        Finding("advice", "saved state", f"{why}: a resumed run is not exact")
        if why
        else _restored(make, plan, saved, following)
    )
    yield speed


def _dtype(env: Env) -> Finding:
    space = env.spec.observation_space
    if isinstance(space, Packed):
        return Finding("fine", "dtype", f"observations are {space}, actions {env.spec.action_space}")
    dtype = np.dtype(space.dtype)
    if dtype == np.float64:
        return Finding(
            "advice",
            "dtype",
            "observations are float64: networks train in float32, so declare the space and return them as float32, or "
            'add [[transform]] use = "transforms:double-to-float"',
        )
    return Finding("fine", "dtype", f"observations are {dtype} {space.shape}, actions {env.spec.action_space}")


def _play(env: Env, steps: int) -> Played:
    """Take random steps, and return what they gave."""
    observation, allowed = env.reset(seed=_SEED), keeping_to_masks(env.spec)
    elapsed = np.zeros(env.spec.num_envs, dtype=int)
    lengths: list[int] = []
    infos: dict[str, Any] = {}
    least, most, terminated = np.inf, -np.inf, 0
    for action in islice(random_actions(env.spec, _SEED), steps):
        step = env.step(allowed(action, observation))
        observation = step.observation
        elapsed += 1
        done = step.terminated | step.truncated
        lengths += elapsed[done].tolist()
        elapsed[done] = 0
        terminated += int(step.terminated.sum())
        least, most = min(least, float(step.reward.min())), max(most, float(step.reward.max()))
        for entries in step.infos.values():
            infos |= entries
    return Played(lengths, terminated, infos, (least, most))


def _ends(env: Env, played: Played, steps: int) -> Iterator[Finding]:
    limit = env.spec.max_episode_steps
    if played.lengths:
        ended = f"{played.terminated} of their own, {len(played.lengths) - played.terminated} cut off"
        yield Finding(
            "fine",
            "ends",
            f"{len(played.lengths)} episodes ended ({ended}), after {np.mean(played.lengths):,.0f} steps on average",
        )
    elif limit is None:
        text = f"no episode ended in {steps:,} random steps, and there is no limit: set [env] max_episode_steps"
        yield Finding("advice", "ends", text)
    else:
        yield Finding("fine", "ends", f"no episode ended in {steps:,} random steps; the limit is {limit:,}")
    least, most = played.rewards
    if least == most:
        ends_tell = played.terminated > 0 and least != 0
        text = "the length of an episode is its return" if ends_tell else "nothing tells good actions from bad ones"
        yield Finding("fine" if ends_tell else "advice", "rewards", f"every reward was {least:g}: {text}")
    else:
        yield Finding("fine", "rewards", f"from {least:.4g} to {most:.4g}")


def _infos(played: Played) -> Finding:
    if not played.infos:
        return Finding("fine", "infos", "none at the ends of episodes; hooks find what `info` holds in the last step")
    shown = ", ".join(f"{name} ({type(value).__name__})" for name, value in sorted(played.infos.items()))
    return Finding("fine", "infos", f"at the ends of episodes: {shown}")


def _saved(env: Any, plan: list[Array]) -> tuple[dict[str, Any], list[list[bytes]]]:
    """Return the state in the middle of an episode, and the steps that follow."""
    env.reset(seed=_SEED)
    for action in plan[:_BEFORE]:
        env.step(action)
    state = copy.deepcopy(env.state_dict())
    return state, [_bytes(env.step(action)) for action in plan[_BEFORE:]]


def _restored(
    make: Callable[[], Env], plan: list[Array], state: dict[str, Any], following: list[list[bytes]]
) -> Finding:
    """Restore a state elsewhere, and compare what follows."""
    other: Any = make()
    try:
        inexact_env(other)  # an env may find out only then how its episodes are to be saved
        other.reset(seed=_SEED + 1)
        other.load_state_dict(state)
        for number, (action, expected) in enumerate(zip(plan[_BEFORE:], following, strict=True)):
            if _bytes(other.step(action)) != expected:
                text = f"a restored env goes on differently, {number} steps after its state was saved"
                return Finding("problem", "saved state", f"{text}; it remembers something that state_dict leaves out")
    finally:
        other.close()
    return Finding("fine", "saved state", "a restored env goes on in the middle of its episode, to the bit")


def _bytes(step: Step) -> list[bytes]:
    return [np.asarray(array).tobytes() for array in step[:4]]


def _speed(env: Env) -> Finding:
    """Step for about a second."""
    env.reset(seed=_SEED)
    actions = list(islice(random_actions(env.spec, _SEED), 64))
    count, began = 0, time.perf_counter()
    while time.perf_counter() - began < _SECONDS:
        for action in actions:
            env.step(action)
        count += len(actions) * env.spec.num_envs
    return Finding("fine", "speed", f"{count / (time.perf_counter() - began):,.0f} steps per second, random actions")
