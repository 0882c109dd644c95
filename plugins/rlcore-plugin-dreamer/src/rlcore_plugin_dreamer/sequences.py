"""Minibatches of replayed steps as the world model reads them: by observation, each with what led to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from rlcore.types import FIRST, MASK, POLICY_STATE, Key
from rlcore_plugin_dreamer.rssm import Latent

if TYPE_CHECKING:
    from rlcore_plugin_dreamer.model import DreamerModel


class Sequences(NamedTuple):
    """Observations in their order, `[time, sequence, ...]`, the one after the last step among them.

    Attributes:
        observation: `[time, sequence, *shape]`.
        action: encoded, that led to it; 0 at the first of an episode.
        first: which begin an episode, bool, `[time, sequence, 1]`.
        begin: the state of the model before the first observation, `[sequence, ...]`.
        reward: that came with it, `[time, sequence]`; 0 at the first of an episode.
        going: the discount where an episode goes on after it, and 0 where it ended.
        counts: which are of the episode, bool, `[time, sequence]`; the others are padding.
        rewarded: of which the reward is known: all but the first row of a sequence that begins within an episode.
        trained: which have a step after them in the sequence, bool.
    """

    observation: Tensor
    action: Tensor
    first: Tensor
    begin: Latent
    reward: Tensor
    going: Tensor
    counts: Tensor
    rewarded: Tensor
    trained: Tensor

    @classmethod
    def of(cls, minibatch: Mapping[Key, Tensor], model: DreamerModel, discount: float) -> Sequences:
        """Return the sequences of a minibatch of the buffer `replay:sequences`, of one-step transitions.

        Args:
            minibatch: entries `[time, sequence, ...]`; the last row is an observation without a step.
            model: encodes actions, and knows how its state was stored.
            discount: of a step.
        """
        mask = minibatch[MASK]
        trained = mask.squeeze(-1)
        begin, last_action = model.carried.unpacked(minibatch[POLICY_STATE])
        taken = model.actions.from_env(minibatch["action"][:-1])
        action = torch.cat([last_action.unsqueeze(0), torch.where(mask[:-1], taken, 0)])
        reward = _after(torch.where(mask, minibatch["next", "reward"], 0))
        ended = _after(mask & minibatch["next", "terminated"])
        counts = torch.cat([trained[:1], trained[:-1]])
        # what is stored beside the last observation of an episode is of another one
        first = minibatch[FIRST] & mask
        return cls(
            minibatch["observation"],
            action,
            first,
            begin,
            reward,
            discount * ended.logical_not().to(reward.dtype),
            counts,
            torch.cat([first[:1].squeeze(-1) & counts[:1], counts[1:]]),
            trained,
        )


def _after(entry: Tensor) -> Tensor:
    """Return an entry of steps `[time, sequence, 1]` by the observations after them; zeros at the first."""
    return torch.cat([torch.zeros_like(entry[:1]), entry[:-1]]).squeeze(-1)
