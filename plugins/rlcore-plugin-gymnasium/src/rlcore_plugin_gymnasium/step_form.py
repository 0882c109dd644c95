"""Whether what one Gymnasium env returns from a step is what it must be: numbers of the right shape, truth values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rlcore.envs import BOOL, FLOAT, as_numbers


class StepForm:
    """The form of the steps of an env. It keeps the types of those that fitted last, so that most need no second look.

    Args:
        shape: of an observation.
        dtype: of the space of observations.

    Attributes:
        fast: bytes and dtype of an observation, and types of reward, terminated and truncated, that fit whatever their
            values are. An array of the right size and dtype can be assigned in one way only, or not at all.
    """

    fast: tuple[int, np.dtype[Any], type, type, type]

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._shape = shape
        self._dtype = dtype
        self._is_integer = not shape and dtype.kind in "iu"
        self.fast = (math.prod(shape) * dtype.itemsize, dtype, float, bool, bool)

    def fitting(self, observation: Any, reward: Any, terminated: Any, truncated: Any) -> tuple[Any, Any, Any, Any]:
        """Return the four as they can be used.

        Raises:
            ValueError: one of them does not fit; says which.
        """
        alike = (type(reward), type(terminated), type(truncated)) == self.fast[2:]
        if alike and self._is_integer and type(observation) is int:  # as most of Gymnasium's Discrete observations are
            return observation, reward, terminated, truncated
        array = self.observation(observation)
        columns = (
            _single("reward", reward, FLOAT),
            _single("terminated", terminated, BOOL),
            _single("truncated", truncated, BOOL),
        )
        numbers = isinstance(reward, float | int | np.floating | np.integer)
        if numbers and isinstance(terminated, bool | np.bool_) and isinstance(truncated, bool | np.bool_):
            self.fast = (array.nbytes, array.dtype, type(reward), type(terminated), type(truncated))
        return (array, *columns)

    def copy(self, observation: Any) -> Any:
        """Return a copy of an observation that fits, in its own shape."""
        return np.array(observation).reshape(self._shape)

    def observation(self, observation: Any) -> Any:
        """Return an observation as an array.

        Raises:
            ValueError: it does not fit.
        """
        return _named("observation", observation, self._shape, self._dtype)


def _single(name: str, value: Any, dtype: np.dtype[Any]) -> Any:
    """Return one number; an array or tensor of one element counts as one, wherever it lies."""
    single = value.item() if hasattr(value, "item") and math.prod(np.shape(value)) == 1 else value
    return _named(name, single, (), dtype).item()


def _named(name: str, value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    try:
        return as_numbers(value, shape, dtype)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from None
