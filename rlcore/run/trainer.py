"""The trainer of a config: its parts are built already, and its arguments say what would have built them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rlcore.assembly.assembly import Assembly
from rlcore.errors import ConfigError
from rlcore.scripts.parts import handed_over_as
from rlcore.scripts.trainer import Trainer
from rlcore.training.parts import TrainerParts


class ConfiguredTrainer(Trainer):
    """A trainer of parts that a config built.

    Its arguments can be read, and are changed in the config.

    Args:
        parts: what it runs.
        assembly: where they are registered.
    """

    def __init__(self, parts: TrainerParts, assembly: Assembly) -> None:
        self._parts_of_config = parts
        super().__init__(**_arguments(parts, assembly.context.built), assembly=assembly)

    def __post_init__(self, log_timings: bool, hooks: Iterable[Any], evaluator: Any, assembly: Assembly | None) -> None:
        """Take the parts that there are, in place of building some; their hooks are among them."""
        assert assembly is not None, "the constructor hands it over"
        self._become_loop(self._parts_of_config, assembly)
        self._strict = type(self) is ConfiguredTrainer

    def _set_argument(self, name: str, value: Any) -> None:
        if self._built:
            raise ConfigError(f"{name}: this trainer was built from a config; change the value there")
        super()._set_argument(name, value)


def _arguments(parts: TrainerParts, built: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a script would have handed over for these parts."""
    optimizers = list(built.get("optimizers", {}).values())
    interval = {} if parts.schedule is None else {"save_trainer_interval": parts.schedule.every.interval}
    return {
        **interval,
        "collector": handed_over_as(parts.collector),
        "total_frames": None if parts.run.total_updates else parts.run.total_frames,
        "loss_module": built.get("loss"),
        "frame_skip": parts.frame_skip,
        "optimizer": optimizers[0] if len(optimizers) == 1 else None,
        "progress_bar": False,
        "seed": parts.run.seed,
        "log_interval": parts.metrics.every.interval,
        "save_trainer_file": parts.store.folder if parts.store is not None else None,
        "num_epochs": parts.buffer.num_epochs,
        "auto_log_optim_steps": parts.update_prefix is not None,
        "replay_buffer": parts.buffer,
    }
