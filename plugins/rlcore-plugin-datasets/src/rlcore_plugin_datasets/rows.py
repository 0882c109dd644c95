"""The transitions of a dataset in packed rows: opened, verified, sampled, and named in checkpoints."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import torch
from pydantic import BaseModel, Field
from rlcore_plugin_replay.storage import StorageKind
from torch import Tensor

from rlcore.envs import observation_dtype
from rlcore.errors import ConfigError, StorageError
from rlcore.types import Context, EnvSpec, Key
from rlcore_plugin_datasets.dataset import Dataset
from rlcore_plugin_datasets.stored import PackedRows, Place, SharedRows, StoredRows
from rlcore_plugin_datasets.transitions import HowJoined, shared_transitions, transitions

log = logging.getLogger(__name__)

# bytes of rows with both observations from which on they share them
SHARED_FROM: Final = 128 << 20


class DataConfig(BaseModel, extra="forbid"):
    """Which data, and which of their episodes."""

    path: str = Field(description="folder of the dataset, relative to the working directory")
    best: float = Field(1.0, gt=0, le=1, description="fraction of the episodes that is used, those of best return")
    open_episodes: Literal["refuse", "truncate"] = Field(
        "refuse", description="an episode whose last step is no end: refuse it, or take it as truncated there"
    )


class DataRows:
    """The transitions of a dataset, packed, and sampled uniformly with replacement.

    The transforms of the run see the observations of the data once, here: one that learns statistics, as
    `running-observation-norm` does, learns those of the data.

    Args:
        config: which data.
        joined: how many steps a transition has, and what it says of those after it.
        storage: where rows lie.
        context: of the run.
        share: whether each observation may be stored once, where the next one of a row is that of the row behind it.
            So it is where rows with both would take much memory: a draw costs some microseconds more then.

    Attributes:
        layout: of a row that is taken.

    Raises:
        ConfigError: spaces of data and env differ, or values lie outside of them.
        StorageError: the data are damaged, or there is no room for them.
    """

    def __init__(
        self, config: DataConfig, joined: HowJoined, storage: StorageKind, context: Context, share: bool = False
    ) -> None:
        self._dataset = Dataset(config.path)
        _check_spaces(self._dataset, context.env.spec)
        self._checksum = self._dataset.verified()
        place = Place(storage, context.device, context.run.folder)
        large = share and _packed_bytes(self._dataset, context.env_spec) >= SHARED_FROM
        shared = shared_transitions(self._dataset, config, joined, context) if large else None
        self._rows: StoredRows = (
            PackedRows(*transitions(self._dataset, config, joined, context), place)
            if shared is None
            else SharedRows(*shared, place)
        )
        self._check_count(self._rows.found)
        self.layout = self._rows.layout

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def device(self) -> torch.device:
        """Where the rows lie."""
        return self._rows.device

    def columns(self) -> dict[Key, Tensor]:
        """Return the entries of all rows, `[row, *shape]` by key: copies where rows share observations."""
        return self._rows.columns()

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        """Return copies of so many rows `[sample, word]`.

        Args:
            count: how many.
            generator: on the device of the rows.
        """
        return self._rows.draw(count, generator)

    def take(self, rows: Tensor) -> Tensor:
        """Return copies `[sample, word]` of rows, by their numbers `[sample]`."""
        return self._rows.take(rows)

    def begins(self) -> Tensor:
        """Return in which rows episodes begin, `[episode]`."""
        return self._rows.begins()

    def initial_observations(self) -> Tensor:
        """Return the first observation of each episode, `[episode, *shape]`."""
        return self.layout.view(self.take(self.begins()), "observation").clone()

    def check_size(self, needed: int) -> None:
        """Refuse data of fewer transitions than an update takes from them.

        Raises:
            ConfigError: says how many there are.
        """
        if len(self) < needed:
            raise ConfigError(
                f"[buffer] minibatch_size: an update takes {needed} transitions, which is more than the {len(self)} "
                f"transitions of {self._dataset.folder}; lower it, or record more episodes"
            )

    def files(self) -> dict[str, str]:
        """Return the checksum of the file with the data, by its path."""
        return {str(self._dataset.file): self._checksum}

    def state_dict(self) -> dict[str, Any]:
        """Return which data these are: their checksum, and how many rows came of them."""
        return {"data": self._checksum, "rows": len(self)}

    def check(self, state: Mapping[str, Any]) -> None:
        """Refuse to go on with other data than those of a checkpoint.

        Raises:
            ConfigError: they are others.
        """
        if state["data"] != self._checksum or state["rows"] != len(self):
            raise ConfigError(
                f"[buffer] path: {self._dataset.file} has the checksum {self._checksum} and {len(self):,} rows, and "
                f"the checkpoint was trained on {state['data']} with {state['rows']:,}; bring those data back, or "
                "begin another run"
            )

    def _check_count(self, found: int) -> None:
        if found != len(self):
            raise StorageError(
                f"{self._dataset.file} has {found:,} steps, and its metadata say {len(self):,}; one of them is damaged"
            )
        log.info(
            "dataset %s: %s transitions, %.1f MiB, checksum %s",
            self._dataset.metadata.dataset_id,
            f"{found:,}",
            self._rows.nbytes / 2**20,
            self._checksum,
        )


def _packed_bytes(dataset: Dataset, spec: EnvSpec) -> int:
    """Return about how many bytes the transitions take with both observations in each row."""
    shape = spec.observation_space.shape or ()
    observation = math.prod(shape) * np.dtype(observation_dtype(spec.observation_space)).itemsize
    return dataset.metadata.steps * 2 * int(observation)


def _check_spaces(dataset: Dataset, spec: EnvSpec) -> None:
    if dataset.spaces != (spec.observation_space, spec.action_space):
        raise ConfigError(
            f"[buffer] path: {Path(dataset.folder)} has the spaces {dataset.spaces[0]} and {dataset.spaces[1]}, and "
            f"env {spec.id!r} has {spec.observation_space} and {spec.action_space}; name the env that the data are of"
        )
