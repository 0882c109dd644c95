"""The collector `workers` with `order = "ready"`: batches of single workers, in the order in which they are done."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor

from rlcore import Context
from rlcore.types import CollectedBatch
from rlcore_plugin_parallel.acting_config import ActingConfig
from rlcore_plugin_parallel.base import WorkersBase
from rlcore_plugin_parallel.journal import Gathered
from rlcore_plugin_parallel.memory import Block
from rlcore_plugin_parallel.split import shares_of
from rlcore_plugin_parallel.turns import AT_A_TIME, Turns

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

    from rlcore.collectors import BatchStorage
    from rlcore_plugin_parallel.bundle import Bundle
    from rlcore_plugin_parallel.pool import Pool

log = logging.getLogger(__name__)


class ReadyCollector(WorkersBase):
    """Hands over the batch of whichever worker is done first, while the others, and soon that one too, go on.

    A batch `[env, time]` has the envs of one worker. A slow worker holds up nobody until its batch would be more than
    `max_lag` updates behind: then the learner waits for it. Nothing is discarded.

    Attributes:
        lags: of the last batch, by how many updates of the weights its policy is behind the learner's.
        worker: whose batch the last one was; -1 before the first.
    """

    def __init__(self, config: ActingConfig, context: Context) -> None:
        shares = shares_of(context.env_spec, config.num_workers)
        super().__init__(config, context, config.max_lag, batch_envs=shares[0].stop)
        if config.max_lag < config.num_workers:
            log.warning(
                "[collector] max_lag = %d with num_workers = %d and order = 'ready': workers wait for each other; with "
                "max_lag = %d or more all of them are busy",
                config.max_lag,
                config.num_workers,
                config.num_workers,
            )
        self.worker = -1
        self._turns = Turns(config.num_workers, config.max_lag)
        self._sent = [0] * config.num_workers
        self._received = [0] * config.num_workers
        self._done: list[tuple[int, Gathered]] = []  # that were not taken yet, in the order in which they came
        self._noise: list[list[Tensor]] = []  # by worker, of its batches in turn
        self._storages: list[list[BatchStorage]] = []

    def collect_columns(self) -> CollectedBatch:
        """Return the next batch as its tensors.

        Raises:
            EnvError: a worker failed, hangs or is gone, or a value is not finite; nothing of the batch reaches the
                buffer.
        """
        pool, frame = self._workers(), self._context.progress.frames
        self._publish()
        self._policy.refresh()  # the noise is sampled here, and may depend on the progress
        if not self._started:
            self._begin(pool, frame)
        while (worker := self._turns.begin(self._published)) is not None:
            place = self._sent[worker]
            self._sent[worker] += 1
            self._send(pool, frame, place, self._noise[worker][place % AT_A_TIME], slice(worker, worker + 1))
        self.worker, answer = self._next(pool)
        storage = self._storages[self.worker][self._received[self.worker] % AT_A_TIME]
        self._received[self.worker] += 1
        self.lags = [self._published - answer.version]
        self._running[self.worker] = answer.running
        self._finished = [episode for _, episode in sorted(answer.episodes, key=lambda at: (at[0], at[1].env_index))]
        return self._finish(storage, [(slice(None), self.lags[0])])

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Begin new episodes, and count those that are dropped."""
        self._discard_pending_batches()
        super().load_state_dict(state)

    def _next(self, pool: Pool) -> tuple[int, Gathered]:
        """Wait for a batch that may be taken, and return whose it is, and what its worker says of it."""
        while True:
            place = self._turns.take([worker for worker, _ in self._done], self._published)
            if place is not None:
                return self._done.pop(place)
            collecting = [index for index, count in enumerate(self._turns.under_way) if count > self._waiting(index)]
            self._done += pool.receive_some("batch", collecting).items()

    def _waiting(self, worker: int) -> int:
        """Return how many batches of a worker are done and not taken."""
        return sum(index == worker for index, _ in self._done)

    def _discard_pending_batches(self) -> None:
        for index, count in enumerate(self._turns.under_way):
            for _ in range(count - self._waiting(index)):
                assert self._pool is not None
                self._pool.receive("batch", only=slice(index, index + 1))
        self._done.clear()
        self._turns.forget()
        self._received = list(self._sent)

    def _allocate(self, processes: BaseContext, bundle: Bundle) -> list[tuple[list[Block], slice]]:
        places = []
        for _ in self._shares:
            blocks, noise, storages = self._blocks(processes, bundle, AT_A_TIME)
            places.append((blocks, slice(0, self.batch_envs)))
            self._noise.append(noise)
            self._storages.append(storages)
        return places

    def _save_episodes(self) -> Any:
        raise AssertionError("workers are ahead of what is saved")

    def _load_episodes(self, episodes: Any) -> None:
        raise AssertionError("workers are ahead of what is saved")
