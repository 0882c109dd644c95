"""The buffer of offline training: the transitions of a dataset in packed rows, sampled uniformly."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from rlcore.buffers import Minibatch
from rlcore.types import Context, Key
from rlcore_plugin_datasets.base import OfflineBuffer, OfflineConfig
from rlcore_plugin_datasets.transitions import ENTRIES, STEPS


class DatasetBuffer(OfflineBuffer):
    """Holds the transitions of recorded episodes, and samples minibatches, uniformly and with replacement.

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
            0.99, ge=0, le=1, description="discount of the rewards that are joined; that of the loss unless said here"
        )

        @property
        def discounts(self) -> bool:
            """Whether `gamma` counts."""
            return self.n_steps > 1

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__(config, config, config.minibatch_size, context)
        self.writes: tuple[Key, ...] = ENTRIES if config.n_steps == 1 else (*ENTRIES, STEPS)
        self._data.check_size(config.minibatch_size)

    def _draw(self, size: int) -> Minibatch:
        layout = self._data.layout
        return Minibatch(size, layout.keys, layout.reader(self._data.draw(size, self._generator).to(self._target)))
