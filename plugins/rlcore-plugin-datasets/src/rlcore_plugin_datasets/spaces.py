"""Spaces as the texts that Minari's metadata has, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rlcore.envs import Packed, is_nested, packed_space
from rlcore.errors import ConfigError
from rlcore_plugin_datasets.leaves import is_tuple, tree_of

if TYPE_CHECKING:
    import gymnasium


def space_text(space: gymnasium.Space[Any]) -> str:
    """Return the JSON of a space, as `minari.serialization.serialize_space` writes it.

    Raises:
        ConfigError: a dataset cannot have that space.
    """
    return json.dumps(_record(tree_of(space.leaves) if isinstance(space, Packed) else space))


def space_of(text: Any) -> gymnasium.Space[Any]:
    """Return the space of such a text; of dicts and tuples that of Gymnasium.

    Raises:
        ValueError: it is none, or of a kind that no buffer takes.
    """
    from gymnasium import spaces

    record = json.loads(text) if isinstance(text, str) else text
    if not isinstance(record, Mapping):
        raise ValueError(f"{text!r} is no space")
    kind = record.get("type")
    try:
        if kind == "Box":
            dtype = _number_type(record["dtype"])
            low, high = (np.array(record[end], dtype=dtype) for end in ("low", "high"))
            if not list(low.shape) == list(high.shape) == record["shape"]:  # Gymnasium would make bounds of that shape
                raise ValueError(f"a Box of shape {record['shape']} with bounds of {low.shape} and {high.shape}")
            return spaces.Box(low, high, low.shape, dtype.type)
        if kind == "Discrete":
            return spaces.Discrete(record["n"], start=record.get("start", 0))
        if kind == "MultiDiscrete":
            counts, starts = np.asarray(record["nvec"]), np.asarray(record["start"])
            return spaces.MultiDiscrete(counts, dtype=_number_type(record["dtype"]).type, start=starts)
        if kind == "MultiBinary":
            return spaces.MultiBinary(record["n"])
        if kind == "Dict":  # pairs, as Gymnasium sorts a dict
            return spaces.Dict([(name, space_of(part)) for name, part in record["subspaces"].items()])
        if kind == "Tuple":
            return spaces.Tuple([space_of(part) for part in record["subspaces"]])
    except (KeyError, TypeError, AttributeError, AssertionError, OverflowError) as error:
        raise ValueError(f"the space {kind} is not whole: {error!r}") from None
    raise ValueError(f"a space of kind {kind!r} is not known here")


def spaces_of(observation: Any, action: Any) -> tuple[gymnasium.Space[Any], gymnasium.Space[Any]]:
    """Return the spaces of one observation and of one action by their texts; dicts and tuples packed.

    Raises:
        ValueError: one is none, or of a kind that no buffer takes.
    """
    actions = space_of(action)
    if is_nested(actions):
        raise ValueError(f"actions are {actions}; they have to be one array or one number")
    try:
        return packed_space(space_of(observation), actions), actions
    except ConfigError as error:
        raise ValueError(str(error)) from None


def _number_type(name: Any) -> np.dtype[Any]:
    dtype: np.dtype[Any] = np.dtype(name)
    if dtype.kind not in "biuf":
        raise ValueError(f"the numbers of a space are {dtype}")
    return dtype


def _record(space: Any) -> dict[str, Any]:
    from gymnasium import spaces

    if isinstance(space, dict):
        parts = {name: _record(part) for name, part in space.items()}
        return (
            {"type": "Tuple", "subspaces": [*parts.values()]}
            if is_tuple(space)
            else {"type": "Dict", "subspaces": parts}
        )
    if isinstance(space, spaces.Box):
        ends = {"low": space.low.tolist(), "high": space.high.tolist()}
        return {"type": "Box", "dtype": str(space.dtype), "shape": list(space.shape), **ends}
    if isinstance(space, spaces.Discrete):
        return {"type": "Discrete", "dtype": "int64", "start": int(space.start), "n": int(space.n)}
    if isinstance(space, spaces.MultiDiscrete):
        counts = {"nvec": space.nvec.tolist(), "start": space.start.tolist()}
        return {"type": "MultiDiscrete", "dtype": str(space.dtype), **counts}
    if isinstance(space, spaces.MultiBinary):
        return {"type": "MultiBinary", "n": np.asarray(space.n).tolist()}
    raise ConfigError(
        f"a dataset has no place for the space {space}: it holds Box, Discrete, MultiDiscrete and MultiBinary, and "
        "dicts and tuples of them"
    )
