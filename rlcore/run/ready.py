"""A run that is ready: its trainer, its config and its folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlcore.checkpoints.backend import Backend
from rlcore.config.sections import Config
from rlcore.errors import ConfigError
from rlcore.run_folder.folder import CHECKPOINTS
from rlcore.run_folder.origin import origin_in
from rlcore.state.restoring import Restored, forget_episodes, restore
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


@dataclass(repr=False)
class Run:
    """A trainer that is ready to run, with its folder.

    Attributes:
        folder: as it was named, relative to the working directory of the start; `trainer.run_info.folder` is absolute.
        report: what became of each component, when the run was resumed.
        backend: writes and reads the checkpoints.
    """

    trainer: Loop
    config: Config
    folder: Path | None
    report: list[Restored]
    backend: Backend

    def __repr__(self) -> str:
        progress, place = self.trainer.progress, "without a folder" if self.folder is None else f"in {self.folder}"
        return f"Run({self.config.run.name!r}, {place}, at {progress.unit} {progress.now:,} of {progress.total:,})"

    def close(self) -> None:
        """Close the envs of a run that was built and does not train."""
        self.trainer.collector.close()

    def load_weights(self, checkpoints: Path, best: bool = False) -> int:
        """Load model and transforms from the latest, or best, checkpoint of another run; return how far that run was.

        The clock of this run stays where it is: a new run trains all of its frames from these weights.

        Args:
            checkpoints: the folder of the run, or that of its checkpoints.
            best: the checkpoint with the best evaluation, where one was evaluated.

        Raises:
            ConfigError: the checkpoint is of another run than the folder.
            StorageError: there is no checkpoint that can be loaded.
        """
        within = checkpoints / CHECKPOINTS
        within = within if within.is_dir() else checkpoints
        store = self.backend.store(within)
        entry = store.best() if best else None
        entry, states = (entry, store.load(entry)) if entry is not None else store.load_newest()
        origin_in(within.absolute().parent, entry)
        components = {
            name: component
            for name, component in self.trainer.parts.stateful.items()
            if name.partition(".")[0] in ("model", "transform")
        }
        restore(components, {name: state for name, state in states.items() if name in components}, {})
        forget_episodes(components)
        return entry.reached
