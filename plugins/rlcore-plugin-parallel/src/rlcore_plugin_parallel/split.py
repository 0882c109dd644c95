"""Dividing the envs among workers, and whether the transforms of a run can be divided with them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rlcore import ConfigError
from rlcore.types import EnvSpec, Transform, with_defaults

if TYPE_CHECKING:
    import gymnasium
    import numpy.typing as npt

_STEPS: Final = 3


def shares_of(spec: EnvSpec, num_workers: int) -> list[slice]:
    """Return which envs each worker steps.

    Raises:
        ConfigError: they cannot be divided evenly, or not into whole games of several agents.
    """
    num_envs, agents = spec.num_envs, len(spec.agents)
    if num_envs % num_workers:
        raise ConfigError(
            f"[collector] num_workers = {num_workers} does not divide [env] num_envs = {num_envs}; every worker steps "
            "the same number of envs"
        )
    size = num_envs // num_workers
    if agents and size % agents:
        raise ConfigError(
            f"[collector] num_workers = {num_workers} leaves each worker {size} of [env] num_envs = {num_envs}, and a "
            f"game has {agents} agents; each worker steps whole games, so lower it, or raise num_envs"
        )
    return [slice(first, first + size) for first in range(0, num_envs, size)]


def check_transforms(
    transforms: Sequence[Transform], space: gymnasium.Space[Any], num_envs: int, shares: Sequence[slice]
) -> None:
    """Try out on copies whether the transforms give each env the same, whichever envs are beside it, and learn nothing.

    Args:
        transforms: in their order.
        space: of one observation of an env.
        num_envs: of all workers.
        shares: the envs of each worker.

    Raises:
        ConfigError: one does not; names it.
    """
    sampled = copy.deepcopy(space)
    sampled.seed(0)
    rows = [np.stack([sampled.sample() for _ in range(num_envs)]) for _ in range(_STEPS)]
    firsts = [np.full(num_envs, time == 0) for time in range(_STEPS)]
    firsts[-1][0] = True
    for transform in transforms:
        frozen = transform.frozen().step(rows[0].copy(), firsts[0])
        whole = copy.deepcopy(transform)
        transformed = [whole.step(row.copy(), first) for row, first in zip(rows, firsts, strict=True)]
        parts = [copy.deepcopy(transform) for _ in shares]
        for row, first, expected in zip(rows, firsts, transformed, strict=True):
            divided = [part.step(row[share].copy(), first[share]) for part, share in zip(parts, shares, strict=True)]
            if not _equal(np.concatenate(divided), expected):
                raise _refusal(transform)
        if not _equal(whole.frozen().step(rows[0].copy(), firsts[0]), frozen):
            raise _refusal(transform)
        rows = [np.array(row) for row in transformed]


def _equal(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    return bool(np.array_equal(one, other, equal_nan=one.dtype.kind == "f"))


def _refusal(transform: Any) -> ConfigError:
    changing = with_defaults(transform, Transform).inner or transform
    return ConfigError(
        f"[collector] workers: the transform {type(changing).__name__} learns from the observations of all envs while "
        "they are collected, and worker processes would each learn from a share of them; use a transform whose "
        "statistics are fitted beforehand, or the collector 'local'"
    )
