"""The trainer of a config: a loop of the parts that were built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlcore.errors import ConfigError
from rlcore.training.loop import Loop
from rlcore.training.parts import TrainerParts


class ConfiguredTrainer(Loop):
    """A loop of parts that a config built. Attributes that stand for keys can be read, and are changed in the config.

    Args:
        parts: what it runs.
        built: the other parts, by kind.
    """

    _of_config: frozenset[str] = frozenset()

    def __init__(self, parts: TrainerParts, built: Mapping[str, Any]) -> None:
        super().__init__(parts)
        optimizers = list(built.get("optimizers", {}).values())
        of_config = {
            "total_frames": None if parts.run.total_updates else parts.run.total_frames,
            "loss_module": built.get("loss"),
            "frame_skip": parts.frame_skip,
            "optimizer": optimizers[0] if len(optimizers) == 1 else None,
            "logger": None,
            "clip_grad_norm": True,
            "clip_norm": None,
            "seed": parts.run.seed,
            "save_trainer_interval": None if parts.schedule is None else parts.schedule.every.interval,
            "log_interval": parts.metrics.every.interval,
            "save_trainer_file": None if parts.store is None else parts.store.folder,
            "num_epochs": parts.buffer.num_epochs,
            "replay_buffer": parts.buffer,
        }
        vars(self).update(of_config)
        self._of_config = frozenset(of_config)
        self._strict = type(self) is ConfiguredTrainer

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._of_config:
            raise ConfigError(f"{name}: this trainer was built from a config; change the value there")
        super().__setattr__(name, value)
