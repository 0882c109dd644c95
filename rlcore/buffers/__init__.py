"""Minibatches, and whole batches for scripts; the buffers of configs are lent."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rlcore.lazy import lazy
from rlcore.plugins.known import lend

if TYPE_CHECKING:
    from rlcore_plugin_rollout.rollout import most_minibatches as most_minibatches
    from rlcore_plugin_rollout.rollout import rows as rows

    from rlcore.buffers.minibatch import Minibatch as Minibatch
    from rlcore.buffers.minibatch import SequenceMinibatch as SequenceMinibatch

__all__, __getattr__, __dir__ = lazy(
    __name__, {"rlcore.buffers.minibatch": "Minibatch SequenceMinibatch"}, partial(lend, __name__)
)
