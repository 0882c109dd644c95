"""Whether everything that trains a policy with a state knows of it; asked before the first frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlcore.errors import ConfigError
from rlcore.types import has_memory
from rlcore.types.optional import offers
from rlcore.types.optional_learning import MemoryTaker

_ADVICE = {
    "buffer": 'it hands out steps one by one, without what came before them; use = "rollout-sequences", or for replay '
    '"replay:sequences"',
    "loss": "it calls the parts of the model without a state; ppo, a2c, r2d2, sac, td3 and ddpg do with one",
    "estimator": "it calls the critic without a state; gae does with one",
}


def check_memory(model: Any, parts: Mapping[str, Any]) -> None:
    """Refuse what trains a policy with a state as one without.

    Args:
        model: of the run.
        parts: loss, estimator and buffer by their section, where there is one.

    Raises:
        ConfigError: says which, and what to use instead.
    """
    if not has_memory(model):
        return
    for section, part in parts.items():
        if part is not None and not (offers(part, MemoryTaker) and part.takes_memory):
            raise ConfigError(
                f"[{section}] {type(part).__name__} does not know policies with a state, as [model] "
                f"{type(model).__name__} has one: {_ADVICE[section]}"
            )
