"""A batch handed on whole, a number of times; hooks make minibatches of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from rlcore.errors import ConfigError
from rlcore.types import Buffer

if TYPE_CHECKING:
    from tensordict import TensorDict


class WholeBatches(Buffer):
    """Hands the batch to every optimisation step; `process_optim_batch` samples from it, or from a replay buffer.

    Args:
        num_epochs: passes over a batch.
        steps: optimisation steps of a pass; None to go on until a hook ends the pass.
        warmup_frames: frames to collect before the first pass.
        drawing: tells whether a hook could end a pass.
    """

    def __init__(self, num_epochs: int, steps: int | None, warmup_frames: int, drawing: Callable[[], bool]) -> None:
        for name, value in (("num_epochs", num_epochs), ("optim_steps_per_batch", steps)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise ConfigError(f"{name} = {value!r}: expected a number of passes or steps")
        self.num_epochs = num_epochs
        self.warmup_frames = warmup_frames
        self._steps = steps
        self._drawing = drawing

    def add(self, batch: TensorDict | None) -> None:
        """Keep nothing."""

    def minibatches(self, batch: TensorDict | None) -> Iterator[Any]:
        """Yield the batch once per step.

        Raises:
            ConfigError: the number of steps is left to a hook, and there is none.
        """
        if self._steps is None and not self._drawing():
            raise ConfigError(
                "optim_steps_per_batch = None takes steps until a hook at 'process_optim_batch' ends the epoch, and "
                "none is registered there: give the number of steps, or register one"
            )
        step = 0
        while self._steps is None or step < self._steps:
            yield batch
            step += 1
