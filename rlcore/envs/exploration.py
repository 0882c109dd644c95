"""Whether policies explore: tensordict's own switch, which its modules and those of TorchRL follow too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensordict.nn import InteractionType as ExplorationType
from tensordict.nn import set_interaction_type as set_exploration_type
from tensordict.nn.probabilistic import interaction_type

from rlcore.errors import ConfigError

if TYPE_CHECKING:
    from torch import Tensor

    from rlcore.types import Policy

__all__ = ["ExplorationType", "choose", "exploration_type", "set_exploration_type"]


def exploration_type() -> ExplorationType:
    """Return what `set_exploration_type` says here; `RANDOM` where it says nothing."""
    return interaction_type() or ExplorationType.RANDOM


def choose(policy: Policy, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return the actions `[env, *action]` of a policy, and what its `describe` needs; None where it did not sample.

    `RANDOM` samples. `MODE` and `DETERMINISTIC` take `policy.mode`; `MEAN` takes `policy.mean`, where there is one.

    Raises:
        ConfigError: the policy has no action of that type.
    """
    wanted = exploration_type()
    if wanted is ExplorationType.RANDOM:
        return policy.act(observation, noise)
    if wanted in (ExplorationType.MODE, ExplorationType.DETERMINISTIC):
        return policy.mode(observation), None
    chosen = getattr(policy, wanted.value, None)
    if chosen is None:
        raise ConfigError(
            f"exploration type {wanted.name}: {type(policy).__name__} has no method {wanted.value}(observation); use "
            "ExplorationType.DETERMINISTIC"
        )
    return chosen(observation), None
