"""Minibatches, and whole batches for scripts; the buffers of configs are lent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore_plugin_rollout.rollout import most_minibatches as most_minibatches
    from rlcore_plugin_rollout.rollout import rows as rows

    from rlcore.buffers.minibatch import Minibatch as Minibatch
    from rlcore.buffers.minibatch import SequenceMinibatch as SequenceMinibatch


def _lent(name: str) -> Any:
    """Return a name that a plugin lends while it is installed."""
    from rlcore.plugins.known import lend

    return lend(__name__, name)


__all__, __getattr__, __dir__ = lazy(__name__, {"rlcore.buffers.minibatch": "Minibatch SequenceMinibatch"}, _lent)
