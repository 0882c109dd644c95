"""Transforms that leave batches as they are, and learn from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.envs import PassThrough

if TYPE_CHECKING:
    from typing import Self

    from tensordict import TensorDict


class LearnsFromBatches(PassThrough):
    """Hands batches on as they are, and writes what it learns from them into a part of the model.

    A replay keeps the raw values, so that a minibatch is scaled by what is known at its update.
    """

    def __init__(self) -> None:
        self._learning = True

    def batch(self, batch: TensorDict) -> TensorDict:
        """Return the batch; take it into the statistics, but for a frozen copy."""
        if self._learning:
            self._learn(batch)
            self._write()
        return batch

    def frozen(self) -> Self:
        """Return a copy that does not learn."""
        copied = super().frozen()
        copied._learning = False
        return copied

    def _learn(self, batch: TensorDict) -> None:
        """Take a batch into the statistics."""
        raise NotImplementedError

    def _write(self) -> None:
        """Write the statistics into the part of the model, where there is one."""
        raise NotImplementedError
