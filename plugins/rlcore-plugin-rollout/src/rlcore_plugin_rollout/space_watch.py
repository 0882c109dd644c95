"""Whether observations lie in their space: looked at by the batch, and said once."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from rlcore.envs import observation_dtype
from rlcore.types import EnvSpec, offers

if TYPE_CHECKING:
    import gymnasium

    from rlcore.types import Array

# of how many batches one is looked at, the first among them
EVERY: Final = 16

log = logging.getLogger(__name__)


class _Box(Protocol):
    """A space with bounds; asked for by its attributes, as Gymnasium is not imported here."""

    low: Array
    high: Array


class SpaceWatch:
    """Says once that observations lie outside of their space; it looks at one batch of sixteen.

    Many envs leave their space by a little, and train well, so this is no error.

    Args:
        spec: of the env.
    """

    def __init__(self, spec: EnvSpec) -> None:
        self._id = spec.id
        self._space = spec.observation_space
        self._bounds = _bounds(spec.observation_space)
        self._batches = 0

    def look(self, observations: Array) -> None:
        """Look at observations `[..., *shape]`."""
        self._batches += 1
        if self._bounds is None or self._batches % EVERY != 1:
            return
        low, high = self._bounds
        outside = (observations < low) | (observations > high)
        if outside.any():
            self._bounds = None
            place = tuple(np.argwhere(outside)[0])
            log.warning(
                "env %r: an observation lies outside of its space %s, for example %s; fix the env or the space. "
                "Training goes on; this is said once.",
                self._id,
                self._space,
                observations[place],
            )


def _bounds(space: gymnasium.Space[Any]) -> tuple[Array, Array] | None:
    """Return the bounds of a box as batches hold them, or None where it holds whatever the dtype does."""
    box: object = space
    if not offers(box, _Box) or box.low is None or box.high is None:
        return None
    low, high = box.low, box.high
    dtype = np.dtype(observation_dtype(space))
    least, most = (-np.inf, np.inf) if dtype.kind == "f" else _range(dtype)
    if bool((low <= least).all() and (high >= most).all()):
        return None
    with np.errstate(over="ignore"):  # a bound beyond single precision is none
        return low.astype(dtype), high.astype(dtype)  # rounded as the observations of a batch are


def _range(dtype: np.dtype[Any]) -> tuple[int, int]:
    if dtype.kind == "b":
        return 0, 1
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)
