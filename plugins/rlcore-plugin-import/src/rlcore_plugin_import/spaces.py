"""The spaces that a file names, beside those of the env that the user names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from rlcore.envs import Packed
from rlcore.errors import ConfigError


def check_space(role: str, named: Mapping[str, Any], space: gymnasium.Space[Any], env_id: str) -> None:
    """Refuse an env with another space than the model was trained with.

    Args:
        role: `observation` or `action`.
        named: what the file says of it; empty for nothing.
        space: of the env.
        env_id: for messages.

    Raises:
        ConfigError: it is another one.
    """
    if not named or isinstance(space, Packed):  # a mask is a leaf beside the observation
        return
    there = {**named}
    kind = there.pop("kind")
    differs = kind != type(space).__name__ or any(
        not _same(value, getattr(space, name, None)) for name, value in there.items()
    )
    if differs and not (role == "observation" and _same(there.get("_shape"), space.shape)):
        told = ", ".join(f"{name.strip('_')} {np.asarray(value).tolist()}" for name, value in there.items())
        raise ConfigError(
            f"the model was trained with {role}s in {kind}({told}), and env {env_id!r} has {space}: name the env that "
            "it was trained in, with --env and --set env.KEY=VALUE"
        )


def _same(value: Any, other: Any) -> bool:
    if other is None or np.shape(value) != np.shape(other):
        return False
    return bool(np.allclose(np.asarray(value, dtype=float), np.asarray(other, dtype=float)))
