"""From batches to minibatches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore.buffers.minibatch import Minibatch as Minibatch
    from rlcore.buffers.minibatch import SequenceMinibatch as SequenceMinibatch
    from rlcore.buffers.rollout import most_minibatches as most_minibatches
    from rlcore.buffers.rollout import rows as rows

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.buffers.minibatch": "Minibatch SequenceMinibatch",
        "rlcore.buffers.rollout": "most_minibatches rows",
    },
)
