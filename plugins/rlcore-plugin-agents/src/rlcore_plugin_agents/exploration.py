"""Whether policies explore: tensordict's own switch, which its modules and those of TorchRL follow too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensordict.nn import InteractionType as ExplorationType
from tensordict.nn import set_interaction_type as set_exploration_type
from tensordict.nn.probabilistic import interaction_type

from rlcore import ConfigError

if TYPE_CHECKING:
    from torch import Tensor

    from rlcore.envs import Playing

__all__ = ["ExplorationType", "choose", "exploration_type", "set_exploration_type"]


def exploration_type() -> ExplorationType:
    """Return what `set_exploration_type` says here; `RANDOM` where it says nothing."""
    return interaction_type() or ExplorationType.RANDOM


def choose(policy: Playing, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return the actions `[env, *action]` of a policy, and what its `describe` needs; None where it did not sample.

    `RANDOM` samples. `MODE` and `DETERMINISTIC` take `policy.mode`; `MEAN` takes `policy.mean`, where there is one.

    Raises:
        ConfigError: the policy has no action of that type.
    """
    kind = exploration_type()
    if kind is ExplorationType.RANDOM:
        return policy.act(observation, noise)
    if kind in (ExplorationType.MODE, ExplorationType.DETERMINISTIC):
        return policy.mode(observation), None
    act = getattr(policy, kind.value, None)  # tensordict names the types, and so the methods of a policy
    if act is None:
        raise ConfigError(
            f"exploration type {kind.name}: {type(policy).__name__} has no method {kind.value}(observation); use "
            "ExplorationType.DETERMINISTIC"
        )
    return act(observation), None
