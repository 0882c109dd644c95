"""The columns that a learner trains on, of episodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from rlcore_plugin_learners.columns import Columns

_OF_MEMORY: Final = (Columns.STATE_IN, Columns.STATE_OUT)


@dataclass(frozen=True)
class EpisodeColumns:
    """Says what a learner asks of episodes besides observations, actions, rewards, ends and outputs of the module.

    Attributes:
        one_more: whether each episode gets a row more, for the value after its last step, which `loss_mask` leaves out.
        next_obs: whether each row has the observation after it.
    """

    one_more: bool = False
    next_obs: bool = False

    def of(self, episode: Any) -> dict[str, Any]:
        """Return the columns `[row, ...]` of an episode of one agent; none where it has no steps."""
        steps = len(episode)
        if not steps:
            return {}
        whole = slice(0, steps)
        observations = np.asarray(episode.get_observations(slice(0, steps + 1)))
        columns = {Columns.ACTIONS: np.asarray(episode.get_actions(whole))}
        for name in episode.extra_model_outputs:
            if name not in _OF_MEMORY:
                columns[name] = np.asarray(episode.get_extra_model_outputs(key=name, indices=whole))
        rewards = np.asarray(episode.get_rewards(whole), np.float32)
        terminated, truncated = np.zeros((2, steps), bool)
        terminated[-1] = episode.is_terminated
        truncated[-1] = episode.is_truncated or (self.one_more and not episode.is_done)
        flags = {Columns.REWARDS: rewards, Columns.TERMINATEDS: terminated, Columns.TRUNCATEDS: truncated}
        if not self.one_more:
            after = {Columns.NEXT_OBS: observations[1:]} if self.next_obs else {}
            return {Columns.OBS: observations[:steps], **columns, **flags, **after}
        flags[Columns.LOSS_MASK] = np.ones(steps, bool)
        repeated = {name: np.concatenate([column, column[-1:]]) for name, column in columns.items()}
        ended = {name: np.append(column, column.dtype.type(0)) for name, column in flags.items()}
        return {Columns.OBS: observations, **repeated, **ended}


def is_episode(value: Any) -> bool:
    """Return whether a value is an episode, of one agent or of several; also one of RLlib."""
    return hasattr(value, "get_observations")


def of_agents(episode: Any, home: str) -> Iterator[tuple[str, Any]]:
    """Yield ids of modules and the episodes of the agents that they act for.

    Args:
        episode: of one agent, or of several.
        home: the module of an episode that names none.
    """
    if not hasattr(episode, "agent_episodes"):
        yield episode.module_id or home, episode
        return
    for agent_id, own in episode.agent_episodes.items():
        yield own.module_id or episode.module_for(agent_id), own


def parts_of(episodes: Sequence[Any], count: int) -> list[list[Any]]:
    """Return episodes in so many parts, each with about as many steps as the others."""
    parts: list[list[Any]] = [[] for _ in range(count)]
    steps = [0] * count
    for episode in sorted(episodes, key=len, reverse=True):
        least = steps.index(min(steps))
        parts[least].append(episode)
        steps[least] += len(episode)
    return parts
