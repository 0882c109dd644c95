"""Logs how many updates there are per collected step, while a collector fills a replay buffer in the background."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from rlcore import Last
from rlcore_plugin_torchrl.hooks.stock import StockHook

if TYPE_CHECKING:
    from rlcore.types import ScriptTrainer

log = logging.getLogger(__name__)


class UTDRHook(StockHook):
    """Logs `utd_ratio`, which is `batch_size * update_count / write_count`, and the two counts.

    The counts of writes and the batch size are those of `trainer.replay_buffer`, or of the buffer behind
    `trainer.collector.getattr_rb`.

    Args:
        trainer: whose updates are counted.

    Attributes:
        observer: True; it changes nothing.
    """

    destinations: ClassVar[Mapping[str, str]] = MappingProxyType({"pre_steps_log": "__call__"})
    default_name: ClassVar[str] = "utdr_hook"
    observer = True

    def __init__(self, trainer: ScriptTrainer) -> None:
        self.trainer = trainer
        self._warned = False

    def __call__(self, batch: Any = None) -> dict[str, Any]:
        """Return the metrics; none before the first write."""
        written, batch_size = self._of_buffer("write_count"), self._of_buffer("batch_size")
        if not written:
            return {}
        if batch_size is None:
            batch_size = 1
            if not self._warned:
                self._warned = True
                log.warning("UTDRHook: the replay buffer has no batch_size; 1 is assumed")
        updates = self.trainer.progress.updates
        ratio = batch_size * updates / written
        return {
            "utd_ratio": Last(ratio),
            "write_count": Last(written),
            "update_count": Last(updates),
            "log_pbar": False,
        }

    def _of_buffer(self, name: str) -> Any:
        buffer = self.trainer.replay_buffer
        # by name, as a collector is asked for what its buffer has
        value = self.trainer.collector.getattr_rb(name) if buffer is None else getattr(buffer, name, None)
        return value() if callable(value) else value
