"""What an env is made of: its wrappers, from the outside, and the env itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def layers(env: Any) -> list[Any]:
    """Return the wrappers around an env, from the outside, and the env itself at last."""
    inwards = [env]
    while env is not env.unwrapped:
        env = env.env
        inwards.append(env)
    return inwards


def modules(env: Any, id_: str) -> Iterator[str]:
    """Yield the names of the modules that the behaviour of an env is written in.

    Args:
        env: a single env, or a vector env.
        id_: which it was made by; one of the form `module:Id-v0` names a module that registers it.
    """
    yield id_.rpartition(":")[0]
    entry_point = getattr(env.unwrapped.spec, "entry_point", None)
    yield entry_point.partition(":")[0] if isinstance(entry_point, str) else getattr(entry_point, "__module__", "")
    for layer in layers(env):
        yield from (kind.__module__ for kind in type(layer).__mro__)
