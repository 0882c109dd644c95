"""Which distribution an action space gets, and which spaces are refused."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import gymnasium
import numpy as np
import torch

from rlcore.errors import ConfigError
from rlcore.types import Distribution
from rlcore_plugin_mlp.distributions import Categorical, Normal, TanhNormal
from rlcore_plugin_mlp.numbered import Bernoulli, MultiCategorical, ShiftedCategorical
from rlcore_plugin_mlp.partly_bounded import PartlyBoundedNormal

# the remedy of an error about actions that are whole numbers of a range
SCALED: Final = {"transform": [{"use": "transforms:action-scale"}]}
_FITS: Final = "it has those for Discrete, MultiDiscrete and MultiBinary, and for a Box of floats of one dimension"
_WRAP: Final = (
    "Let the Gymnasium wrapper TransformAction turn one of these into it, in a class of your own that [env] wrappers "
    'names: wrappers = ["my_wrappers:MyActions"]'
)


def for_space(space: gymnasium.Space[Any], device: torch.device, log_scale: bool = False) -> Distribution:
    """Return the distribution that fits an action space; none of its samples lies outside.

    Discrete spaces get a categorical distribution, MultiDiscrete ones one for each choice, MultiBinary ones a Bernoulli
    distribution of each bit. Boxes get a normal one: squashed to the bounds where both are finite, to the one bound
    where there is one, and as it is where there is none.

    Args:
        space: of the actions.
        device: of the distribution.
        log_scale: whether the parameters of a normal distribution are logarithms of its scales.

    Raises:
        ConfigError: the space is of another kind, holds integers or half-precision floats, or has a range that single
            precision cannot hold.
    """
    numbered = _for_numbers(space, device)
    if numbered is not None:
        return numbered
    if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1:
        raise _refusal(space, f"{_FITS}. {_WRAP}")
    if space.dtype not in (np.float32, np.float64):
        raise _refusal(
            space,
            f"actions of {space.dtype} would lie outside; {_FITS} (float32, float64). Put the transform "
            "action-scale before it, which rounds for integer actions, or let a wrapper of the env take floats",
            SCALED if np.issubdtype(space.dtype, np.integer) else {},
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


def _for_numbers(space: gymnasium.Space[Any], device: torch.device) -> Distribution | None:
    """Return the distribution of numbered actions; None for spaces of another kind, and for those without a choice."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return ShiftedCategorical(int(space.n), int(space.start)) if space.start else Categorical(int(space.n))
    if isinstance(space, gymnasium.spaces.MultiDiscrete):
        sizes, starts = space.nvec.reshape(-1).tolist(), space.start.reshape(-1).tolist()
        return MultiCategorical(sizes, starts, space.nvec.shape, _dtype(space), device) if sizes else None
    if isinstance(space, gymnasium.spaces.MultiBinary) and np.prod(space.shape):
        return Bernoulli(space.shape, _dtype(space))
    return None


def _dtype(space: gymnasium.Space[Any]) -> torch.dtype:
    return torch.from_numpy(np.empty(0, space.dtype)).dtype


def _bounds(space: gymnasium.spaces.Box) -> tuple[Any, Any]:
    """Return the bounds in single precision, rounded to the inside."""
    low, high = space.low.astype(np.float32), space.high.astype(np.float32)
    infinity = np.float32(np.inf)
    return (
        np.where(low < space.low, np.nextafter(low, infinity), low),
        np.where(high > space.high, np.nextafter(high, -infinity), high),
    )


def _refusal(space: gymnasium.Space[Any], why: str, remedy: Mapping[str, Any] = MappingProxyType({})) -> ConfigError:
    return ConfigError(f"the mlp model has no distribution for the action space {space}: {why}", remedy=remedy)
