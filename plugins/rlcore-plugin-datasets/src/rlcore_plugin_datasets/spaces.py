"""Spaces as the texts that Minari's metadata has, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rlcore.envs import Packed
from rlcore.errors import ConfigError

if TYPE_CHECKING:
    import gymnasium


def space_text(space: gymnasium.Space[Any]) -> str:
    """Return the JSON of a space, as `minari.serialization.serialize_space` writes it.

    Raises:
        ConfigError: a dataset cannot have that space.
    """
    from gymnasium import spaces

    if isinstance(space, spaces.Box) and not isinstance(space, Packed):
        ends = {"low": space.low.tolist(), "high": space.high.tolist()}
        return json.dumps({"type": "Box", "dtype": str(space.dtype), "shape": list(space.shape), **ends})
    if isinstance(space, spaces.Discrete):
        return json.dumps({"type": "Discrete", "dtype": "int64", "start": int(space.start), "n": int(space.n)})
    if isinstance(space, spaces.MultiDiscrete):
        counts = {"nvec": space.nvec.tolist(), "start": space.start.tolist()}
        return json.dumps({"type": "MultiDiscrete", "dtype": str(space.dtype), **counts})
    raise ConfigError(
        f"a dataset has no place for the space {space}: it holds Box, Discrete and MultiDiscrete; observations that "
        "are dicts can be joined by a wrapper of the env, such as Gymnasium's FlattenObservation"
    )


def space_of(text: Any) -> gymnasium.Space[Any]:
    """Return the space of such a text.

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
            dtype = np.dtype(record["dtype"])
            low, high = (np.array(record[end], dtype=dtype) for end in ("low", "high"))
            return spaces.Box(low, high, tuple(record["shape"]), dtype.type)
        if kind == "Discrete":
            return spaces.Discrete(record["n"], start=record.get("start", 0))
        if kind == "MultiDiscrete":
            counts, starts = np.asarray(record["nvec"]), np.asarray(record["start"])
            return spaces.MultiDiscrete(counts, dtype=np.dtype(record["dtype"]).type, start=starts)
    except (KeyError, TypeError, AssertionError) as error:
        raise ValueError(f"the space {kind} is not whole: {error!r}") from None
    raise ValueError(f"a space of kind {kind!r} is not known here; there are Box, Discrete and MultiDiscrete")
