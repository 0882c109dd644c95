"""The buffer from offline to online: a share of each minibatch from a dataset, the rest from what is collected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch
from pydantic import Field
from rlcore_plugin_replay.base import ReplayConfig
from rlcore_plugin_replay.buffer import ReplayBuffer
from rlcore_plugin_replay.packing import Batch
from torch import Tensor

from rlcore.buffers import Minibatch
from rlcore.errors import ConfigError
from rlcore.types import CollectedBatch, Context
from rlcore_plugin_datasets.rows import DataConfig, DataRows
from rlcore_plugin_datasets.transitions import ENTRIES, STEPS, HowJoined

if TYPE_CHECKING:
    from tensordict import TensorDict


class MixedBuffer(ReplayBuffer):
    """Samples a fixed share of each minibatch from a dataset, and the rest from the latest transitions of the run.

    With `share = 0.5` it is the symmetric sampling of RLPD (Ball et al., 2023, arXiv 2302.02948, section 4.1). Both are
    sampled uniformly and with replacement; while nothing was collected, the data are the whole minibatch. The rows of
    the data come first.

    `offline_updates` are made before, from the data alone, so that one run goes from offline to online: each of the
    first batches is followed by `offline_updates_per_batch` of them, until they are done. The warm-up begins to count
    when the run does, and matters once they are.

    Checkpoints carry the position of the samples, the transitions of the run, and the checksum of the data, not the
    data. Of a batch, only the entries that the data have are kept.

    Attributes:
        writes: the entries of a minibatch.

    Raises:
        ConfigError: the data do not fit the env, are fewer than their share, or several ranks would sample them.
        StorageError: the data are damaged, or there is no room.
    """

    class Config(ReplayConfig, DataConfig):
        """Which data, which share of a minibatch they are, and how much is replayed beside them."""

        share: float = Field(0.5, gt=0, lt=1, description="of each minibatch that comes from the data, rounded")
        offline_updates: int = Field(0, ge=0, description="updates from the data alone, before the others")
        offline_updates_per_batch: int = Field(
            500, ge=1, description="how many of them follow a batch: metrics, evaluations and checkpoints come between"
        )

    _config: Config  # type: ignore[assignment]  # which has keys of stacks too

    def __init__(self, config: Config, context: Context) -> None:
        if context.group.size > 1:
            raise ConfigError("[buffer] mixed: several ranks would sample the same rows; leave [ranks] out")
        self._offline_left = config.offline_updates
        super().__init__(config, context)
        self._of_data = min(max(1, round(config.share * config.minibatch_size)), config.minibatch_size - 1)
        if not self._of_data:
            raise ConfigError("[buffer] minibatch_size = 1 has no room for samples of both kinds; raise it")
        self._data = DataRows(config, HowJoined(config.n_steps, config.gamma), config.storage, context)
        self._data.check_size(self._of_data)
        self._kept = tuple(key for key in self._data.layout.keys if key != STEPS)
        self._ring.begin(self._data.layout)
        self.writes = ENTRIES if config.n_steps == 1 else (*ENTRIES, STEPS)

    def __len__(self) -> int:
        return len(self._data) + len(self._ring)

    @property
    def warmup_frames(self) -> int:
        """Frames before the first update; none while updates from the data alone are left."""
        return 0 if self._offline_left else self._warmup

    @warmup_frames.setter
    def warmup_frames(self, frames: int) -> None:
        self._warmup = frames

    def add(self, batch: TensorDict | CollectedBatch) -> None:
        """Copy the valid steps of a batch `[env, time]`, as far as the data have such entries."""
        taken = Batch.of(batch)
        super().add(CollectedBatch({key: taken.columns[key] for key in self._kept}, taken.mask))

    def minibatches(self, batch: TensorDict) -> Iterator[Minibatch]:
        """Yield minibatches of the data alone as long as there are some to be made; then those of both."""
        if not self._offline_left:
            yield from super().minibatches(batch)
            return
        progress = self._context.progress
        count = min(self._offline_left, self._config.offline_updates_per_batch)
        if progress.clock == "updates":
            count = min(count, progress.total - progress.now)
        for _ in range(count):
            self._offline_left -= 1
            yield self._minibatch(self._data.draw(self._config.minibatch_size, self._generator))

    def most_updates(self, batch_steps: int) -> int:
        """Return how many minibatches follow a batch at most."""
        most = super().most_updates(batch_steps)
        return max(most, self._config.offline_updates_per_batch) if self._offline_left else most

    def initial_observations(self) -> Tensor:
        """Return the first observation of each episode of the data, `[episode, *shape]`."""
        return self._data.initial_observations()

    def data_files(self) -> dict[str, str]:
        """Return the checksum of the file with the data, by its path."""
        return self._data.files()

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the replay, which data there are beside it, and how many updates from them are left."""
        return {**super().state_dict(), **self._data.state_dict(), "offline_left": self._offline_left}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take it back; see `ReplayBuffer.load_state_dict`.

        Raises:
            ConfigError: the data are others than those of the checkpoint.
            StorageError: the transitions are those of a buffer of another size or of other envs.
        """
        self._data.check(state)
        super().load_state_dict(state)
        if self._ring.layout is None:
            self._ring.begin(self._data.layout)
        self._offline_left = state["offline_left"]

    def _draw(self, size: int) -> Minibatch:
        if not len(self._ring):
            return self._minibatch(self._data.draw(size, self._generator))
        of_data = self._of_data if size == self._config.minibatch_size else round(size * self._config.share)
        index = torch.randint(len(self._ring), (size - of_data,), generator=self._generator, device=self._device)
        return self._minibatch(torch.cat([self._data.draw(of_data, self._generator), self._ring.rows(index)]))

    def _minibatch(self, rows: Tensor) -> Minibatch:
        layout = self._data.layout
        return Minibatch(rows.shape[0], layout.keys, layout.reader(rows.to(self._context.device)))
