"""Imagined rollouts: the policy of now acts in the learned dynamics, from observations that were real."""

from __future__ import annotations

import logging
from typing import Final, NamedTuple

import torch
from torch import Tensor

from rlcore.types import Heart, Key
from rlcore_plugin_mbpo.config import ImaginationConfig
from rlcore_plugin_mbpo.model import MBPOModel

log = logging.getLogger(__name__)

OBSERVATION: Final[Key] = "observation"
ACTION: Final[Key] = "action"
NEXT: Final[Key] = ("next", "observation")
REWARD: Final[Key] = ("next", "reward")
DONE: Final[Key] = ("next", "done")
TERMINATED: Final[Key] = ("next", "terminated")
TRUNCATED: Final[Key] = ("next", "truncated")
ENTRIES: Final = (OBSERVATION, ACTION, NEXT, REWARD, DONE, TERMINATED, TRUNCATED)

_PIECE: Final = 16_384  # rows that go through the ensemble at once


class Rollouts(NamedTuple):
    """Imagined transitions.

    Attributes:
        columns: key to `[row, *shape]`.
        left: how many predictions were outside of the range of the data; those rollouts ended before.
        penalty: mean of what was taken off the rewards.
    """

    columns: dict[Key, Tensor]
    left: int
    penalty: float

    def __len__(self) -> int:
        return int(self.columns[ACTION].shape[0])


def imagine(
    model: MBPOModel, start: Tensor, length: int, config: ImaginationConfig, generator: torch.Generator, heart: Heart
) -> Rollouts:
    """Return the transitions of rollouts of the policy of now (Janner et al., 2019, algorithm 2, lines 6 to 8).

    A rollout ends where its episode terminates, after `length` steps, or where the ensemble predicts what is not finite
    or farther beyond the range of the data than `range_margin`: that last prediction is left out.

    Args:
        model: acts and predicts.
        start: observations `[row, observation]`, float32.
        length: most steps of each.
        config: of the buffer.
        generator: of everything random, on the device of the rows.
        heart: counts the pieces.
    """
    found: list[dict[Key, Tensor]] = []
    left, taken_off = 0, torch.zeros((), device=start.device)
    for piece in torch.split(start, _PIECE):
        observation = piece
        for _ in range(length):
            heart.beats += 1
            columns, penalty = _step(model, observation, config, generator)
            inside = _inside(model, columns, config.range_margin)
            left += int((~inside).sum())
            columns = {key: column[inside] for key, column in columns.items()}
            taken_off += penalty[inside].sum()
            found.append(columns)
            observation = columns[NEXT][~columns[TERMINATED].squeeze(-1)]
            if not observation.shape[0]:
                break
    joined = {key: torch.cat([columns[key] for columns in found]) for key in ENTRIES}
    rows = max(1, joined[ACTION].shape[0])
    return Rollouts(joined, left, float(taken_off) / rows)


@torch.no_grad()
def _step(
    model: MBPOModel, observation: Tensor, config: ImaginationConfig, generator: torch.Generator
) -> tuple[dict[Key, Tensor], Tensor]:
    """Return a step of each row by key, and the penalty of each reward, `[row, 1]`."""
    action = model.explore(observation, generator)
    imagined = model.dynamics.imagine(observation, action, generator, deviation=config.penalty > 0)
    following, reward = imagined.observation, imagined.reward
    penalty = torch.zeros_like(reward)
    if (
        imagined.deviation is not None
    ):  # Yu et al. (2020, arXiv 2005.13239), equation 7 with the estimator of section 4.3
        penalty = config.penalty * imagined.deviation
        reward = reward - penalty
    if imagined.termination is not None:
        terminated = imagined.termination > 0
    else:
        assert model.rule is not None
        terminated = model.rule(observation, action, following).unsqueeze(-1)
    columns: dict[Key, Tensor] = {
        OBSERVATION: observation,
        ACTION: action,
        NEXT: following,
        REWARD: reward,
        DONE: terminated,
        TERMINATED: terminated,
        TRUNCATED: torch.zeros_like(terminated),
    }
    return columns, penalty


def _inside(model: MBPOModel, columns: dict[Key, Tensor], margin: float) -> Tensor:
    """Return which rows are finite and in the range of the data, bool `[row]`; what is not finite compares as False."""
    low, high = model.dynamics.low, model.dynamics.high
    beyond, following = margin * (high - low), columns[NEXT]
    there = (following >= low - beyond) & (following <= high + beyond)
    return there.all(-1) & columns[REWARD].isfinite().squeeze(-1)
