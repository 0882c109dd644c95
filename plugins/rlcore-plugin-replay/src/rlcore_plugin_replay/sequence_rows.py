"""From the rows of sequences to what a loss reads of them: which count, n-step rewards, where values come from."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from rlcore.buffers import SequenceMinibatch
from rlcore.types import MASK, Key
from rlcore_plugin_replay.n_step import REWARD, STEPS
from rlcore_plugin_replay.sequence_keys import BOOTSTRAP
from rlcore_plugin_replay.stacks import FOLLOWING, OBSERVATION
from rlcore_plugin_replay.streams import Cut


def sequences(
    rows: Mapping[Key, Tensor], offset: Tensor, after: Tensor, cut: Cut, gamma: float, further: Mapping[Key, Tensor]
) -> SequenceMinibatch:
    """Return a minibatch of sequences.

    Args:
        rows: entries `[time, sequence, ...]` as they were stored.
        offset: of each row from the first trained step, int64 `[time, 1]`.
        after: how many steps of the episode follow from there on, as far as rows reach, int64 `[sequence]`.
        cut: of episodes into sequences.
        gamma: the discount.
        further: entries that are there already.

    Returns:
        The rows, with what is under `next` that of the last of the steps that are joined, and the rewards summed;
        `steps_to_next_obs` says how many these are, and `bootstrap_row` in which row the observation after them is. The
        mask is True where a step is trained on. All of this is `[time, sequence, 1]`, and without meaning elsewhere.
    """
    trained = (offset >= 0) & (offset < cut.length) & (offset < after)  # [time, sequence]
    joined = (after - offset).clamp(max=cut.n_steps) * trained
    row = torch.arange(len(offset), device=offset.device).unsqueeze(1)
    bootstrap, last = row + joined, row + (joined - 1).clamp(min=0)
    sequence = torch.arange(len(after), device=offset.device)
    entries: dict[Key, Tensor] = {
        **further,
        MASK: trained.unsqueeze(-1),
        STEPS: joined.unsqueeze(-1),
        BOOTSTRAP: bootstrap.unsqueeze(-1),
        REWARD: _joined_rewards(rows[REWARD], joined, cut.n_steps, gamma),
    }
    following = {key for key in rows if isinstance(key, tuple) and key[0] == "next"} - {REWARD}

    def gather(key: Key) -> Tensor:
        if key == FOLLOWING:
            return rows[OBSERVATION][bootstrap, sequence]
        return rows[key][last, sequence] if key in following else rows[key]

    minibatch = SequenceMinibatch(trained.numel(), (*rows, FOLLOWING, *entries), gather)
    minibatch.update(entries)
    return minibatch


def _joined_rewards(reward: Tensor, joined: Tensor, n_steps: int, gamma: float) -> Tensor:
    """Return the discounted sums over so many steps `[time, sequence]`."""
    total = torch.zeros_like(reward)
    for ahead in range(n_steps):
        going = joined[: len(reward) - ahead] > ahead
        total[: len(reward) - ahead] += gamma**ahead * going.unsqueeze(-1) * reward[ahead:]
    return total
