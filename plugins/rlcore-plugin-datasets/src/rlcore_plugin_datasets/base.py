"""What the buffers of offline training share: the rows of a dataset, and iterations of updates from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

import torch
from pydantic import Field
from rlcore_plugin_replay.storage import StorageKind
from torch import Tensor

from rlcore.buffers import Minibatch
from rlcore.errors import ConfigError
from rlcore.types import Collector, Context, EnvSpec, with_defaults
from rlcore_plugin_datasets.dataset import Dataset
from rlcore_plugin_datasets.rows import DataConfig, DataRows
from rlcore_plugin_datasets.transitions import HowJoined


class OfflineConfig(DataConfig):
    """Which data, and how they are used."""

    updates_per_iteration: int = Field(
        500, ge=1, description="updates of an iteration; schedules move between two, intervals are kept within it too"
    )
    storage: StorageKind = Field(
        "device", description="where rows lie: the run's device, host memory, or a mapped file (memmap)"
    )


class OfflineBuffer(ABC):
    """Holds the steps of recorded episodes, and samples from them.

    The transforms of the run see the observations of the data once, when the buffer is built: one that learns
    statistics, as `running-observation-norm` does, learns those of the data. Checkpoints carry the position of the
    samples and the checksum of the data, not the data.

    Args:
        config: of the buffer.
        joined: how many steps a row has, and what it says of those after it.
        size: of a minibatch.
        context: of the run.

    Attributes:
        has_data: True; a run with it needs no collector.
        shares_observations: whether each observation of large data may be in memory once; `columns` of the data are
            copies then.
        num_epochs: always 1; `updates_per_iteration` says how many minibatches an iteration has.
        warmup_frames: 0.

    Raises:
        ConfigError: spaces of data and env differ, values lie outside of them, or something is collected besides.
        StorageError: the data are damaged, or there is no room for them.
    """

    has_data: Final = True
    shares_observations: ClassVar[bool] = True

    def __init__(self, config: OfflineConfig, joined: HowJoined, size: int, context: Context) -> None:
        if context.group.size > 1:
            raise ConfigError(f"[buffer] {context.name}: several ranks would sample the same rows; leave [ranks] out")
        _check_collector(context)
        self.num_epochs: Final = 1
        self.warmup_frames: Final = 0
        self._minibatch_size = size
        self._updates_per_iteration = config.updates_per_iteration
        self._target = context.device
        self._data = DataRows(config, joined, config.storage, context, self.shares_observations)
        self._generator = torch.Generator(self._data.device).manual_seed(context.seed("draw"))

    @classmethod
    def spec_of(cls, config: OfflineConfig, context: Context) -> EnvSpec:
        """Return the spec of one env that the data come from, as far as they say it.

        Raises:
            StorageError: the dataset cannot be read.
        """
        dataset = Dataset(config.path)
        observation, action = dataset.spaces
        name = dataset.metadata.env_id or dataset.metadata.dataset_id
        return EnvSpec(id=name, observation_space=observation, action_space=action, num_envs=1)

    def __len__(self) -> int:
        return len(self._data)

    def add(self, batch: Any) -> None:
        """Take nothing in: no batch comes where nothing is collected."""
        return

    def minibatches(self, batch: Any) -> Iterator[Minibatch]:
        """Yield as many minibatches as the config says; the loop takes fewer where something is due before."""
        for _ in range(self._updates_per_iteration):
            yield self._draw(self._minibatch_size)

    def most_updates(self, batch_steps: int) -> int:
        """Return how many minibatches an iteration has."""
        return self._updates_per_iteration

    def feedback(self, minibatch: Mapping[Any, Tensor], values: Mapping[str, Tensor]) -> None:
        """Need none: no sample becomes likelier than others."""
        return

    def initial_observations(self) -> Tensor:
        """Return the first observation of each episode of the data, `[episode, *shape]`."""
        return self._data.initial_observations()

    def data_files(self) -> dict[str, str]:
        """Return the checksum of the file with the data, by its path."""
        return self._data.files()

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the samples, and which data they are of."""
        return {"generator": self._generator.get_state(), **self._data.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on sampling from there.

        Raises:
            ConfigError: the data are others than those of the checkpoint.
        """
        self._data.check(state)
        self._generator.set_state(state["generator"])

    @abstractmethod
    def _draw(self, size: int) -> Minibatch:
        """Return the next minibatch of that size."""


def _check_collector(context: Context) -> None:
    if with_defaults(context.built.get("collector"), Collector).batch_steps:
        raise ConfigError(
            f"[buffer] {context.name} trains on its file alone, so that what is collected would be lost; leave the "
            "section [collector] out, and give [run] total_updates in the place of total_frames"
        )
