"""Specs of TorchRL as spaces of Gymnasium, and the entries of an env that a policy sees and writes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import gymnasium
import numpy as np

from rlcore.errors import ConfigError, did_you_mean


def space_of(spec: Any, name: str) -> gymnasium.Space[Any]:
    """Return the space of one row that a leaf spec of TorchRL describes.

    Args:
        spec: of one row, without the dimensions of a batch or of agents.
        name: of the entry, for messages.

    Raises:
        ConfigError: rlcore has no such space.
    """
    shape = tuple(spec.shape)
    kinds = {kind.__name__ for kind in type(spec).__mro__}
    if "MultiCategorical" in kinds:
        return gymnasium.spaces.MultiDiscrete(np.asarray(spec.nvec))
    if "Categorical" in kinds and shape in ((), (1,)):
        return gymnasium.spaces.Discrete(int(spec.space.n))
    if "OneHot" in kinds and "MultiOneHot" not in kinds:
        return gymnasium.spaces.Discrete(int(spec.space.n)) if name == "action" else _ones(shape)
    if "Binary" in kinds or "Bounded" in kinds or "Unbounded" in kinds or {"BoundedContinuous"} & kinds:
        return _box(spec, shape)
    raise ConfigError(
        f"[env]: {name} of this env of TorchRL is {type(spec).__name__}{list(shape)}, for which rlcore has no space"
    )


def _ones(shape: tuple[int, ...]) -> gymnasium.Space[Any]:
    return gymnasium.spaces.Box(0, 1, shape, np.float32)


def _box(spec: Any, shape: tuple[int, ...]) -> gymnasium.Space[Any]:
    dtype = np.dtype(str(spec.dtype).rpartition(".")[2])
    low, high = (
        (-np.inf, np.inf)
        if dtype.kind == "f"
        else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        if dtype.kind != "b"
        else (0, 1)
    )
    space: Any = spec.space
    if space is not None and hasattr(space, "low"):
        low, high = (bound.cpu().expand(shape).numpy() for bound in (space.low, space.high))
    if dtype.kind == "b":
        dtype = np.dtype(np.uint8)
    return gymnasium.spaces.Box(low, high, shape, dtype.type)


def only_leaf(keys: Iterable[Any], wanted: str | None, what: str, option: str) -> Any:
    """Return the key of an entry that a policy sees or writes.

    Args:
        keys: of the leaves there are.
        wanted: by the config; None for the only one, or the one that is called `observation`.
        what: kind of the entries, for messages.
        option: key of the config that chooses one.

    Raises:
        ConfigError: there are several, or none of that name.
    """
    named = {key if isinstance(key, str) else ".".join(key): key for key in keys}
    last = [name for name in named if name.rpartition(".")[2] == (wanted or what)]
    if wanted in named:
        return named[wanted]
    if len(last) == 1:
        return named[last[0]]
    if wanted is not None:
        raise ConfigError(
            f"[env] {option} = {wanted!r}: the env has no such entry{did_you_mean(wanted, named)}; it has "
            f"{', '.join(named)}"
        )
    if len(named) == 1:
        return next(iter(named.values()))
    raise ConfigError(
        f"[env] {option}: this env of TorchRL has several, {', '.join(named)}; name one, or join them with "
        'transforms = [{ part = "CatTensors", in_keys = [...], out_key = "observation" }]'
    )
