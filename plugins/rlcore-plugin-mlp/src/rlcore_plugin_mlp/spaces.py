"""Which distribution an action space gets, and which spaces are refused."""

from __future__ import annotations

from typing import Any, Final

import gymnasium
import numpy as np
import torch

from rlcore.errors import ConfigError
from rlcore.types import Distribution
from rlcore_plugin_mlp.distributions import Categorical, Normal, TanhNormal
from rlcore_plugin_mlp.partly_bounded import PartlyBoundedNormal

_FITS: Final = "it has those for Discrete spaces that start at 0 and for a Box of floats of one dimension"


def for_space(space: gymnasium.Space[Any], device: torch.device, log_scale: bool = False) -> Distribution:
    """Return the distribution that fits an action space; none of its samples lies outside.

    Discrete spaces get a categorical distribution. Boxes get a normal one: squashed to the bounds where both are
    finite, to the one bound where there is one, and as it is where there is none.

    Args:
        space: of the actions.
        device: of the distribution.
        log_scale: whether the parameters of a normal distribution are logarithms of its scales.

    Raises:
        ConfigError: the space is of another kind, holds integers or half-precision floats, or has a range that single
            precision cannot hold.
    """
    if isinstance(space, gymnasium.spaces.Discrete) and space.start == 0:
        return Categorical(int(space.n))
    if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1:
        raise _refusal(space, _FITS)
    if space.dtype not in (np.float32, np.float64):
        raise _refusal(
            space,
            f"actions of {space.dtype} would lie outside; {_FITS} (float32, float64). Put the transform "
            "action-scale before it, which rounds for integer actions, or let a wrapper of the env take floats",
        )
    low, high = (torch.from_numpy(bound).to(device) for bound in _bounds(space))
    below, above = low.isfinite(), high.isfinite()
    if bool((below & above & ~((low < high) & (high - low).isfinite() & (high + low).isfinite())).any()):
        raise _refusal(space, "a range is empty, or too wide for single precision")
    if bool((below & above).all()):
        return TanhNormal(low, high, log_scale)
    if bool((below | above).any()):
        return PartlyBoundedNormal(low, high, log_scale)
    return Normal(space.shape[0], log_scale)


def _bounds(space: gymnasium.spaces.Box) -> tuple[Any, Any]:
    """Return the bounds in single precision, rounded to the inside."""
    low, high = space.low.astype(np.float32), space.high.astype(np.float32)
    infinity = np.float32(np.inf)
    return (
        np.where(low < space.low, np.nextafter(low, infinity), low),
        np.where(high > space.high, np.nextafter(high, -infinity), high),
    )


def _refusal(space: gymnasium.Space[Any], why: str) -> ConfigError:
    return ConfigError(f"the mlp model has no distribution for the action space {space}: {why}")
