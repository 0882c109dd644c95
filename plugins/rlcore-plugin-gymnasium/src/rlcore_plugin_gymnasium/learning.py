"""Layers of an env that learn while it is trained on, told by the statistics that they hold and not by their class."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import gymnasium

from rlcore_plugin_gymnasium.chain import layers
from rlcore_plugin_gymnasium.held import attributes_of

# words in the names of what running statistics consist of
_PARTS: Final = (
    {"mean", "avg", "average", "mu"},
    {"var", "variance", "std", "deviation", "sigma", "m2", "squares"},
    {"count", "n", "num", "steps", "samples", "total"},
)
_OF_REWARDS: Final = {"reward", "rewards", "return", "returns", "ret", "rew"}


def warning_on(env: gymnasium.Env[Any, Any]) -> str | None:
    """Return what to say of an env with layers that learn, and the transforms to use in their place; None of others."""
    replacements = {type(layer).__name__: _transform_for(layer) for layer in _learning(env)}
    if not replacements:
        return None
    names, transforms = (
        " and ".join(replacements),
        " and ".join(f"transforms:{name}" for name in dict.fromkeys(replacements.values())),
    )
    return (
        f"{names} in the env: what is learnt there while training, no evaluation, agent or exported policy has; it "
        f"starts over in each, and the policy sees other numbers. Use {transforms} ([[transform]]) in its place, which "
        "all of them have"
    )


def _learning(env: gymnasium.Env[Any, Any]) -> Iterator[Any]:
    """Yield the layers that hold running statistics, and the wrappers that save a state of their own."""
    around = layers(env)
    for layer in around:
        parts = [value for name, value in (attributes_of(layer) or {}).items() if name not in ("env", "spec")]
        outlives = layer is not around[-1] and (hasattr(layer, "load_state_dict") or _is_running(layer))
        if outlives or any(_is_running(part) for part in parts):
            yield layer


def _is_running(value: Any) -> bool:
    """Return whether an object has a mean, a spread and a count of what it saw."""
    if isinstance(value, type | gymnasium.Space):
        return False
    kinds = {name for name in dir(type(value)) if isinstance(getattr(type(value), name, None), property)}
    words = [_words(name) for name in {*(attributes_of(value) or {}), *kinds}]
    return all(any(part & word for word in words) for part in _PARTS)


def _transform_for(layer: Any) -> str:
    words = set().union(*(_words(name) for name in (type(layer).__name__, *(attributes_of(layer) or {}))))
    is_of_rewards = isinstance(layer, gymnasium.RewardWrapper) or words & _OF_REWARDS
    return "reward-norm" if is_of_rewards else "running-observation-norm"


def _words(name: str) -> set[str]:
    """Return the words of a name like `_running_mean` or `NormalizeReward`, in lower case."""
    return {word.lower() for word in re.findall(r"[mM]2|[A-Z]?[a-z]+|[A-Z]+", name)}
