"""Where imagined episodes end: rules of well-known envs, and what a config's `termination` names.

A rule takes observations, actions and next observations `[row, ...]` and returns bool `[row]`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import torch
from torch import Tensor

from rlcore.config import import_named
from rlcore.errors import ConfigError

Rule: TypeAlias = Callable[[Tensor, Tensor, Tensor], Tensor]

LEARNED: Final = "learned"
NEVER: Final = "never"


def rule_of(termination: str) -> Rule | None:
    """Return the rule that a config names; None where termination is learned.

    Raises:
        ConfigError: it names none.
    """
    if termination == LEARNED:
        return None
    if termination == NEVER:
        return never
    if ":" not in termination:
        raise ConfigError(
            f"[model] termination = {termination!r}: expected 'learned', 'never', or a function 'module:name'"
        )
    named: Any = import_named(termination, "[model] termination")
    return _Checked(named, termination)


class _Checked:
    """A rule of the user's own, whose results are looked at."""

    def __init__(self, rule: Rule, name: str) -> None:
        self._rule = rule
        self._name = name

    def __call__(self, observation: Tensor, action: Tensor, following: Tensor) -> Tensor:
        ends: Any = self._rule(observation, action, following)
        rows = observation.shape[0]
        if not isinstance(ends, Tensor) or ends.dtype != torch.bool or ends.numel() != rows:
            found = f"{ends.dtype} {list(ends.shape)}" if isinstance(ends, Tensor) else type(ends).__name__
            raise ConfigError(
                f"[model] termination = {self._name!r} returned {found}; it must return a bool tensor [{rows}], which "
                "rows end their episode"
            )
        return ends.reshape(rows)


def never(observation: Tensor, action: Tensor, following: Tensor) -> Tensor:
    """End no episode, as in Pendulum and HalfCheetah."""
    return torch.zeros(observation.shape[0], dtype=torch.bool, device=observation.device)


def inverted_pendulum(observation: Tensor, action: Tensor, following: Tensor) -> Tensor:
    """End where the pole of InvertedPendulum leans by more than 0.2."""
    return following[:, 1].abs() > 0.2


def hopper(observation: Tensor, action: Tensor, following: Tensor) -> Tensor:
    """End where Hopper falls: its torso is below 0.7 or leans by more than 0.2, or something is beyond 100."""
    stands = (following[:, 1:].abs() < 100).all(-1) & (following[:, 0] > 0.7) & (following[:, 1].abs() < 0.2)
    return ~stands


def walker2d(observation: Tensor, action: Tensor, following: Tensor) -> Tensor:
    """End where Walker2d falls: its torso is outside of 0.8 to 2, or leans by more than 1."""
    stands = (following[:, 0] > 0.8) & (following[:, 0] < 2.0) & (following[:, 1].abs() < 1.0)
    return ~stands
