"""The entries of a minibatch of sequences, for the buffer that writes them and for losses that read them."""

from __future__ import annotations

from typing import Final

from rlcore.types import FIRST, MASK, POLICY_STATE, Key
from rlcore_plugin_replay.n_step import REWARD, STEPS

BOOTSTRAP: Final[Key] = "bootstrap_row"
# what the buffer writes besides the rows as they were stored
ADDED: Final[tuple[Key, ...]] = (MASK, STEPS, BOOTSTRAP)
# what a loss needs of them to learn action values
READ: Final[tuple[Key, ...]] = (
    "observation",
    "action",
    FIRST,
    POLICY_STATE,
    MASK,
    STEPS,
    BOOTSTRAP,
    REWARD,
    ("next", "terminated"),
)
