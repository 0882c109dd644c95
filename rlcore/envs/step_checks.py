"""Whether what an env returns has the form that its spec says: shapes, kinds of numbers, truth values.

NumPy assigns a scalar to a whole row, text to a number and anything to a truth value without a word; what is trained
on would then not be what the env meant. How the numbers behave is in `checks.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rlcore.envs.episode_starts import only_resets
from rlcore.errors import EnvError, RlcoreError, describe
from rlcore.types.records import EnvSpec, Step

if TYPE_CHECKING:
    from rlcore.types.records import Array

BOOL: Final = np.dtype(bool)
FLOAT: Final = np.dtype(np.float64)
_KINDS: Final = {"b": "true or false", "i": "integers", "u": "integers", "f": "numbers"}
_NUMBERS: Final = "".join(_KINDS)


class FormError(EnvError):
    """What an env returned has another form than its spec says.

    Attributes:
        problem: what was expected, and what came.
    """

    def __init__(self, env_id: str, problem: Exception) -> None:
        super().__init__(f"env {env_id!r}: {problem}; fix the env, or the space that declares it otherwise")
        self.problem = problem


class StepCheck:
    """Brings the steps of an env into the form of its spec, or refuses them.

    A step of that form is returned as it is. Lists become arrays, and numbers of another kind are converted where no
    value changes.

    Args:
        spec: of the env, before any transform.
    """

    def __init__(self, spec: EnvSpec) -> None:
        space = spec.observation_space
        self._id = spec.id
        self._resets_later = only_resets(spec)
        self._rows = (spec.num_envs,)
        self._element: tuple[int, ...] = space.shape or ()
        self._shape = (spec.num_envs, *self._element)
        self._dtype = np.dtype(space.dtype)
        self._fast: tuple[int, Any, int, Any, int] = (-1, None, -1, None, -1)

    def __call__(self, step: Step) -> Step:
        """Return a step in its right form.

        Raises:
            EnvError: says what has the wrong form, and what is expected.
        """
        observation, reward, terminated, truncated, finals, _ = step
        size, dtype, reward_size, reward_dtype, count = self._fast
        try:
            if (  # arrays of these sizes and dtypes can be assigned in one way only, or not at all
                observation.nbytes == size
                and observation.dtype is dtype
                and reward.nbytes == reward_size
                and reward.dtype is reward_dtype
                and terminated.nbytes == truncated.nbytes == count
                and terminated.dtype is truncated.dtype is BOOL
            ):
                return self.with_finals(step) if finals else step
        except AttributeError:  # no arrays
            pass
        return self._second_look(step)

    def _second_look(self, step: Step) -> Step:
        observation, reward, terminated, truncated, finals, _ = step
        fitting = step._replace(
            observation=self.observation(observation),
            reward=self._fitting("reward", reward, self._rows, FLOAT),
            terminated=self._fitting("terminated", terminated, self._rows, BOOL),
            truncated=self._fitting("truncated", truncated, self._rows, BOOL),
        )
        if all(new is original for new, original in zip(fitting[:4], step[:4], strict=True)):  # so do others like them
            self._fast = (observation.nbytes, observation.dtype, reward.nbytes, reward.dtype, terminated.nbytes)
        return self.with_finals(fitting) if finals else fitting

    def observation(self, observation: Any) -> Array:
        """Return the observations `[env, *shape]` of a reset or step.

        Raises:
            EnvError: their shape is another, or their numbers do not fit into the space's dtype.
        """
        return self._fitting("observation", observation, self._shape, self._dtype)

    def with_finals(self, step: Step) -> Step:
        """Return a step whose last observations are in their right form.

        Raises:
            EnvError: one of them has another form, or the env resets in a step of its own and has none to give.
        """
        finals = step.final_observation
        if self._resets_later:
            problem = "final_observation is for envs that reset at once, and reset_mode says 'next_step'"
            raise FormError(self._id, ValueError(problem))
        for final in finals.values():
            if type(final) is not np.ndarray or final.dtype is not self._dtype or final.shape != self._element:
                break
        else:
            return step
        checked = {
            index: self._fitting(f"final_observation of env {index}", final, self._element, self._dtype)
            for index, final in finals.items()
        }
        return step._replace(final_observation=checked)

    def _fitting(self, what: str, value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        try:
            return as_numbers(value, shape, dtype)
        except (TypeError, ValueError) as error:
            raise FormError(self._id, type(error)(f"{what}: {error}")) from None


def as_numbers(value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return a value as an array that fits a shape and the kind of a dtype.

    Floats of any width fit where floats are expected, and integers and truth values too. Where integers or truth
    values are expected, a value must be equal to what it becomes.

    Raises:
        TypeError: it holds something that is no number; says what was expected, and what was found.
        ValueError: its shape or one of its values does not fit; says the same.
    """
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"expected numbers of shape {shape}, found rows of unequal lengths") from None
    if array.dtype.kind not in _NUMBERS:
        raise TypeError(f"expected {_KINDS[dtype.kind]}, found {_shown(value)}")
    if array.shape != shape:
        raise ValueError(f"expected shape {shape}, found {array.shape}")
    if dtype.kind == "f" or array.dtype == dtype:
        return array
    with np.errstate(invalid="ignore"):
        cast = array.astype(dtype)
    if not np.array_equal(cast, array):
        raise ValueError(f"expected {_KINDS[dtype.kind]} ({dtype}), found {_shown(value)}")
    return cast


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def env_error(env_id: str, where: str, error: BaseException, lost: str) -> RlcoreError:
    """Return the error for what an env raised, or for a step that does not fit its spec; `lost` is discarded."""
    if isinstance(error, FormError):
        error = error.problem
    if isinstance(error, RlcoreError):
        return error
    return EnvError(f"env {env_id!r} {where}: {describe(error)}; {lost} is discarded")
