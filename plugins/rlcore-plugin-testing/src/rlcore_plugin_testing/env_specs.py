"""Whether an env does what its spec says: what is wrong with an observation, a step, an end, or the seeding."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rlcore.envs.action_masks import keeping_to_masks, random_actions
from rlcore.envs.episode_starts import only_resets
from rlcore.errors import ArgumentTypeError, EnvError
from rlcore.types import Env, EnvSpec, Step, offers

if TYPE_CHECKING:
    from rlcore.types import Array, BoolArray


class ChecksItself(Protocol):
    """An env of TorchRL, which has a check of its own."""

    def check_env_specs(self, *, seed: int | None = None) -> object:
        """Raise an error where it does not do what its specs say."""
        ...


def check_env_specs(env: Any, steps: int = 100, seed: int = 0) -> None:
    """Compare what an env returns with what its spec says.

    The env is reset twice with the same seed, and stepped with the same random actions. Checked are shapes, dtypes and
    bounds of observations, that they and the rewards are finite, the flags, what happens at the end of an episode and
    after it, the step limit, and that both passes are equal. The env is left where they end.

    Args:
        env: any env, also one seen through transforms. One of TorchRL is checked by its own method of this name, which
            takes steps of its own number.
        steps: of each pass; an end of an episode is only checked where one comes.
        seed: of both resets and of the actions.

    Raises:
        ArgumentTypeError: another library made the env.
        EnvError: says what differed, at which step.
    """
    if offers(env, ChecksItself):
        env.check_env_specs(seed=seed)
        return
    if not isinstance(getattr(env, "spec", None), EnvSpec):  # other libraries have a `spec` of another class
        raise ArgumentTypeError(
            f"check_env_specs: a {type(env).__name__} is no env of rlcore; build one with Factory, or call the check "
            "of its library: gymnasium.utils.env_checker.check_env"
        )
    first, second = (_checked_pass(env, steps, seed) for _ in range(2))
    for time, (one, other) in enumerate(zip(first, second, strict=True)):
        for name in one:
            if one[name] != other[name]:
                where = f"reset(seed={seed})" if time == 0 else f"step {time - 1} after reset(seed={seed})"
                raise EnvError(
                    f"env {env.spec.id!r}: the {name} of {where} with the same actions differs from one pass to the "
                    "next; seed everything random in reset"
                )


def observation_problem(spec: EnvSpec, observation: Any) -> str | None:
    """Return what is wrong with the observations `[env, *shape]` of a reset or step, or None."""
    space, expected = spec.observation_space, (spec.num_envs, *(spec.observation_space.shape or ()))
    if not isinstance(observation, np.ndarray):
        return f"the observation is a {type(observation).__name__}, not an array"
    if observation.shape != expected:
        return f"the observation has shape {observation.shape}; {spec.num_envs} envs of {space} have {expected}"
    if observation.dtype != space.dtype:
        return f"the observation has dtype {observation.dtype}, the space says {space.dtype}"
    for index, row in enumerate(observation):
        if row.dtype.kind == "f" and not np.isfinite(row).all():
            return f"the observation of env {index} is not finite: {row}"
        if not space.contains(row):
            return f"the observation of env {index} is outside {space}: {row}"
    return None


def step_problem(spec: EnvSpec, step: Step) -> str | None:
    """Return what is wrong with the form of a step, or None."""
    shape = (spec.num_envs,)
    if step.reward.shape != shape:
        return f"the reward has shape {step.reward.shape}, not {shape}"
    if step.reward.dtype.kind != "f":
        return f"the reward has dtype {step.reward.dtype}, not a float"
    if not np.isfinite(step.reward).all():
        return f"the reward of env {int(np.argmin(np.isfinite(step.reward)))} is not finite: {step.reward}"
    for name, flag in (("terminated", step.terminated), ("truncated", step.truncated)):
        if flag.shape != shape:
            return f"{name} has shape {flag.shape}, not {shape}"
        if flag.dtype != bool:
            return f"{name} has dtype {flag.dtype}, not bool"
    return observation_problem(spec, step.observation)


def end_problem(spec: EnvSpec, step: Step, over: BoolArray) -> str | None:
    """Return what is wrong with the ends of episodes in a step, or None.

    Args:
        spec: of the env.
        step: what the env returned.
        over: `[env]`, whose episodes ended in the step before.
    """
    done = step.terminated | step.truncated
    places = set(np.flatnonzero(done).tolist())
    if not set(step.infos) <= places:
        return f"infos of the envs {sorted(step.infos)}, but the envs that ended are {sorted(places)}"
    if not only_resets(spec):
        if set(step.final_observation) != places:
            return f"final_observation of the envs {sorted(step.final_observation)}, but {sorted(places)} ended"
        expected = spec.observation_space.shape or ()
        for index, final in step.final_observation.items():
            if np.shape(final) != expected:
                return f"the final_observation of env {index} has shape {np.shape(final)}, not {expected}"
        return None
    if step.final_observation:
        return "a final_observation, but an env that resets in the next step returns the last observation itself"
    if (done & over).any() and not spec.waits:
        index = int(np.argmax(done & over))
        return f"an end right after an end in env {index}; that step only resets, so both flags are False"
    if step.reward[over].any():
        return f"a reward of {step.reward[over]} in the step after an end; that step only resets, so it is 0"
    return None


def _checked_pass(env: Env, steps: int, seed: int) -> list[dict[str, bytes]]:
    """Reset and step an env, check everything, and return it as bytes, the reset first."""
    spec = env.spec
    observation = env.reset(seed=seed)
    _refuse(spec, f"reset(seed={seed})", observation_problem(spec, observation))
    passed = [{"observation": observation.tobytes()}]
    over, elapsed = np.zeros(spec.num_envs, dtype=bool), np.zeros(spec.num_envs, dtype=np.int64)
    allowed = keeping_to_masks(spec)
    for time, random_action in enumerate(islice(random_actions(spec, seed), steps)):
        action = allowed(random_action, observation)
        original = action.copy()
        step = env.step(action)
        problem = step_problem(spec, step) or end_problem(spec, step, over)
        if not np.array_equal(action, original):
            problem = "step changed the array of actions that it was given"
        elapsed = elapsed + 1 - (over & only_resets(spec))
        _refuse(spec, f"step {time}", problem or _length_problem(spec, elapsed))
        over, observation = step.terminated | step.truncated, step.observation
        elapsed[over] = 0
        arrays = zip(Step._fields[:4], step[:4], strict=True)
        passed.append({name: np.asarray(array).tobytes() for name, array in arrays})
    return passed


def _length_problem(spec: EnvSpec, elapsed: Array) -> str | None:
    limit = spec.max_episode_steps
    if limit is None or elapsed.max() <= limit:
        return None
    return f"the episode of env {int(elapsed.argmax())} is longer than the {limit} steps of max_episode_steps"


def _refuse(spec: EnvSpec, where: str, problem: str | None) -> None:
    if problem is not None:
        raise EnvError(f"env {spec.id!r}, {where}: {problem}; fix the env, or the spec that declares it otherwise")
