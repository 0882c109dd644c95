"""The buffer of offline training: the transitions of a dataset in packed rows, sampled uniformly."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from rlcore.buffers import Minibatch
from rlcore.types import Context, Key
from rlcore_plugin_datasets.base import OfflineBuffer, OfflineConfig
from rlcore_plugin_datasets.transitions import HowJoined


class DatasetBuffer(OfflineBuffer):
    """Holds the transitions of recorded episodes, and samples minibatches, uniformly and with replacement.

    With `return_to_go` a minibatch has that entry too, float32 `[sample, 1]`: the discounted sum of the rewards from
    the step to the last one that was recorded of its episode. Where that was truncated, nothing is added for what
    would have come after.

    Attributes:
        takes_memory: False; it hands out steps one by one.
        writes: the entries of a minibatch.

    Raises:
        ConfigError: there are fewer rows than samples; see also `OfflineBuffer`.
    """

    takes_memory: Final = False

    class Config(OfflineConfig):
        """Which data, and how they are used."""

        minibatch_size: int = Field(256, ge=1, description="transitions per update")
        n_steps: int = Field(1, ge=1, description="steps joined into one transition")
        gamma: float = Field(
            0.99, ge=0, le=1, description="discount of rewards that are summed; that of the loss unless said here"
        )
        return_to_go: bool = Field(
            False,
            description="whether return_to_go has the discounted sum of the rewards from a step to its episode's end",
        )

        @property
        def discounts(self) -> bool:
            """Whether `gamma` counts."""
            return self.n_steps > 1 or self.return_to_go

    def __init__(self, config: Config, context: Context) -> None:
        joined = HowJoined(config.n_steps, config.gamma, config.return_to_go)
        super().__init__(config, joined, config.minibatch_size, context)
        self.writes: tuple[Key, ...] = self._data.layout.keys
        self._data.check_size(config.minibatch_size)
        self._moves = self._data.device != self._target

    def _draw(self, size: int) -> Minibatch:
        layout, rows = self._data.layout, self._data.draw(size, self._generator)
        return Minibatch(size, layout.keys, layout.reader(rows.to(self._target) if self._moves else rows))
