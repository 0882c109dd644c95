"""The hook that records the episodes of a run while it trains."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, Field

from rlcore import hookimpl
from rlcore.collectors import LocalCollector
from rlcore.errors import ConfigError
from rlcore.types import Collector, Context, defines
from rlcore_plugin_datasets.dataset import write_dataset
from rlcore_plugin_datasets.infos import StepInfos
from rlcore_plugin_datasets.journal import SUFFIX, Journal, read_journal
from rlcore_plugin_datasets.recording import env_spec_text
from rlcore_plugin_datasets.running import RunningEpisodes

if TYPE_CHECKING:
    from tensordict import TensorDict

    from rlcore.types import Trainer
    from rlcore_plugin_datasets.episode import Episode

log = logging.getLogger(__name__)

_INFOS: Final = "[hook] record infos"


class RecordHook:
    """Writes every episode that ends while a run trains, and a dataset of them where it ends.

    Episodes go into a file that only grows, `NAME.episodes` in the run folder, and at the end of the run, or at its
    stop, into a dataset beside it; of a run that was killed, `rlcore data convert` makes one. A resume cuts the file
    back to what its checkpoint knew, and goes on in the middle of the episodes that were running, so that no episode is
    there twice or in parts. Observations and rewards are recorded as the batch has them, in single precision.

    A run without a folder records nothing.

    Raises:
        ConfigError: a transform changes what the batches hold, several ranks train, or no batch comes by.
    """

    observer: Final = True

    class Config(BaseModel, extra="forbid"):
        """Where."""

        folder: str = Field(
            "recorded", pattern=r"^[\w][\w.-]*$", description="of the dataset, inside of the run folder"
        )
        every: int = Field(1, ge=1, description="record one of so many episodes")
        infos: bool = Field(False, description="whether the infos of the steps are recorded too")

    def __init__(self, config: Config, context: Context) -> None:
        if context.group.size > 1:
            raise ConfigError("[hook] record: each rank has episodes of its own; leave [ranks] out")
        if context.transforms:
            raise ConfigError(
                "[hook] record: batches have observations and rewards as the transforms leave them, and a dataset has "
                "those of the env; leave the transforms out, or record the run afterwards (rlcore data record RUN)"
            )
        self._config = config
        self._run, spec = context.run, context.env.spec
        self._spaces = (spec.observation_space, spec.action_space)
        self._env_id = spec.id
        self._infos: StepInfos | None = None
        self._journal: Journal | None = None
        if context.run.folder is not None:
            self._infos = StepInfos(context.env, _INFOS) if config.infos else None
            self._journal = Journal(context.run.folder / f"{config.folder}{SUFFIX}", self._spaces)
        self._running = RunningEpisodes((spec.observation_space.dtype, spec.action_space.dtype), self._infos)
        self._ended = 0
        self._goes_on = False

    @hookimpl
    def setup(self, trainer: Trainer) -> None:
        """Begin with an empty file, unless the run was resumed.

        Raises:
            ConfigError: the collector hands out no batches.
        """
        if defines(trainer.collector, Collector.steps_written):
            raise ConfigError("[hook] record: this collector fills its buffer in the background; no batch comes by")
        if self._infos is not None and not isinstance(trainer.collector, LocalCollector):
            raise ConfigError(
                f"{_INFOS}: the collector {type(trainer.collector).__name__} steps envs in other processes, whose "
                "infos do not come by; use the collector 'local', or record the run afterwards (rlcore data record "
                "--infos)"
            )
        if self._journal is not None and not self._goes_on:
            self._journal.begin()

    @hookimpl
    def batch_process(self, batch: TensorDict) -> None:
        """Record the episodes that end in this batch."""
        if self._journal is None:
            return
        for episode in self._running.take(batch):
            if self._ended % self._config.every == 0:
                self._journal.append(episode)
            self._ended += 1

    @hookimpl
    def checkpoint_saved(self) -> None:
        """Have the disk hold what the checkpoint knows of."""
        if self._journal is not None:
            self._journal.sync()

    @hookimpl
    def shutdown(self) -> None:
        """Write the dataset."""
        if self._journal is None:
            return
        self._journal.close()
        if self._journal.path.exists():
            self._write(self._journal.path)

    def forget_episodes(self) -> None:
        """Drop the episodes that were running: the collector begins others."""
        self._running.forget()

    def state_dict(self) -> dict[str, Any]:
        """Return how far the file goes, and the episodes that are running."""
        position = None if self._journal is None else self._journal.position()
        infos = {} if self._infos is None else {"infos": self._infos.state_dict()}
        return {"position": position, "running": self._running.state_dict(), "ended": self._ended, **infos}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Cut the file back, and go on in the middle of these episodes.

        Raises:
            ConfigError: infos were recorded and are not any more, or the other way round.
            StorageError: the file is not what it was at the checkpoint.
        """
        if self._journal is not None and ("infos" in state) != (self._infos is not None):
            before, now = (str(there).lower() for there in ("infos" in state, self._infos is not None))
            raise ConfigError(
                f"{_INFOS} = {now}, and the episodes that were running were recorded with {before}; leave it as it "
                "was, or resume with --fresh for this hook"
            )
        if self._infos is not None:
            self._infos.load_state_dict(state["infos"])
        self._running.load_state_dict(state["running"])
        self._ended = state["ended"]
        if self._journal is not None and state["position"] is not None:
            self._journal.go_back(state["position"])
            self._goes_on = True

    def _write(self, file: Path) -> None:
        """Write the dataset, in the place of that of an earlier end."""
        folder = file.with_name(self._config.folder)
        spaces, episodes = read_journal(file)
        first: list[Episode] = list(islice(episodes, 1))
        if not first:
            return
        whole: Iterator[Episode] = chain(first, episodes)
        own = {"env": self._env_id, "run": self._run.name}
        more = {
            **env_spec_text(self._env_id, self._run.resolved_config.get("env", {})),
            "dataset_id": f"{self._run.name}-v0",
            "rlcore": own,
        }
        place = folder.with_name(f"{folder.name}.new")
        shutil.rmtree(place, ignore_errors=True)
        dataset = write_dataset(place, spaces, whole, more)
        if folder.exists():
            shutil.rmtree(folder)
        place.rename(folder)
        log.info("recorded %s episodes of %s steps: %s", dataset.metadata.episodes, dataset.metadata.steps, folder)
