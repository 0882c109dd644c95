"""A run that is ready: its trainer, its config and its folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rlcore.checkpoints.backend import Backend
from rlcore.config.sections import Config
from rlcore.run_folder.folder import CHECKPOINTS
from rlcore.run_folder.origin import origin_in
from rlcore.state.restoring import Restored, forget_episodes, restore
from rlcore.training.loop import Loop


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
