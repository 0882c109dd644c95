"""Spaces of JAX's env libraries as those of Gymnasium."""

from __future__ import annotations

from typing import Any

import gymnasium
import jax
import numpy as np

from rlcore.errors import ConfigError


def space_of(space: Any, whose: str) -> gymnasium.Space[Any]:
    """Return the space of Gymnasium with the same elements.

    Args:
        space: of Gymnasium, or one that has `n`, or `low`, `high` and `shape`.
        whose: for messages.

    Raises:
        ConfigError: it is neither.
    """
    if isinstance(space, gymnasium.Space):
        return space
    if hasattr(space, "n"):
        return gymnasium.spaces.Discrete(int(space.n))
    if not all(hasattr(space, name) for name in ("low", "high", "shape")):
        raise ConfigError(
            f"[env] {whose} is a {type(space).__name__}; it must be one array or one number: a Box or a Discrete"
        )
    return box_of(space.low, space.high, tuple(space.shape), getattr(space, "dtype", np.float32))


def box_of(low: Any, high: Any, shape: tuple[int, ...], dtype: Any) -> gymnasium.spaces.Box:
    """Return a box in the precision that JAX computes in; the largest number stands for no bound."""
    dtype = np.dtype(jax.dtypes.canonicalize_dtype(dtype))
    bounds = [np.broadcast_to(np.asarray(bound).astype(dtype), shape) for bound in (low, high)]
    if np.issubdtype(dtype, np.floating):
        largest = np.finfo(dtype).max
        bounds = [np.where(np.abs(bound) >= largest, np.copysign(np.inf, bound), bound) for bound in bounds]
    return gymnasium.spaces.Box(bounds[0].astype(dtype), bounds[1].astype(dtype), shape, dtype.type)
