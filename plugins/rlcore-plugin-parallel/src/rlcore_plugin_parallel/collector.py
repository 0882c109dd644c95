"""The collector `workers`: each worker process steps a share of the envs with a copy of the policy."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from rlcore import Context
from rlcore.collectors import LocalCollector
from rlcore.errors import StorageError
from rlcore.types import CollectedBatch
from rlcore_plugin_parallel.acting_config import ActingConfig
from rlcore_plugin_parallel.base import WorkersBase
from rlcore_plugin_parallel.journal import Gathered, Journal
from rlcore_plugin_parallel.pool import ALL, Pool
from rlcore_plugin_parallel.ready import ReadyCollector
from rlcore_plugin_parallel.worth import saved_seconds

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

    from rlcore.collectors import BatchStorage
    from rlcore_plugin_parallel.bundle import Bundle
    from rlcore_plugin_parallel.memory import Block

log = logging.getLogger(__name__)


def make_workers(config: ActingConfig, context: Context) -> WorkersCollector | ReadyCollector:
    """Return a collector with worker processes, for batches in the `order` of the config."""
    return ReadyCollector(config, context) if config.order == "ready" else WorkersCollector(config, context)


class WorkersCollector(WorkersBase):
    """Steps the envs in worker processes, and returns batches of all envs.

    With `mode = "sync"` all workers collect a batch with the weights of the learner, and wait while it learns. With
    `mode = "async"` they go on with up to `max_lag` further batches. In both modes a batch `[env, time]` has the same
    steps of every env, in the order of the envs. It is a view of memory that the next call overwrites.

    A worker that ends or hangs is replaced. With `mode = "sync"` and envs with a state that can be saved, batches stay
    the same; else the envs of the worker begin new episodes, and the running ones are counted as dropped.

    Attributes:
        lags: for each worker, the number of updates by which its policy of the last batch is behind the learner.
        dropped_episodes: number of running episodes that a resume or a replaced worker could not continue.
    """

    def __init__(self, config: ActingConfig, context: Context) -> None:
        super().__init__(config, context, 0 if config.mode == "sync" else config.max_lag)
        self.lags = [0] * config.num_workers
        self._journal: Journal | None = None
        self._received = 0
        self._sent = 0
        self._noise: list[Tensor] = []  # of batches, used in turn
        self._storages: list[BatchStorage] = []
        self._local: LocalCollector | None = None  # steps the envs in this process, where that is faster
        self._may_be_local = (
            config.processes == "auto" and config.mode == "sync" and config.exact_rows and self._on_run_device
        )

    def collect_columns(self) -> CollectedBatch:
        """Return the next batch.

        Raises:
            EnvError: a worker failed, hangs or has ended, or a value is not finite; the batch is lost.
        """
        if self._is_local():
            return self._collect_locally()
        pool = self._workers()
        frame = self._context.progress.frames
        self._publish()
        self._policy.refresh()  # the noise is drawn in this process, and may depend on the progress
        if not self._started:
            self._begin(pool, frame)
        while self._sent <= self._received + self._ahead:
            self._send(pool, frame, self._sent, self._noise[self._sent % len(self._noise)], ALL)
            self._sent += 1
        answers: list[Gathered] = pool.receive("batch")
        storage = self._storages[self._received % len(self._storages)]
        self._received += 1
        self.lags = [self._published - answer.version for answer in answers]
        self._running = [answer.running for answer in answers]
        finished = sorted(
            itertools.chain(*(answer.episodes for answer in answers)), key=lambda at: (at[0], at[1].env_index)
        )
        self._finished = [episode for _, episode in finished]
        if self._journal is not None:
            assert storage.actions is not None
            self._journal.add(storage.actions, answers)
        return self._finish(storage, zip(self._shares, self.lags, strict=True))

    def inexact(self) -> str | None:
        """Return why a resume begins new episodes, or None when every env goes on in the middle of its episode."""
        reason = super().inexact()
        if reason is None and not self._is_local():
            answers = self._workers().ask("inexact", slow=not self._tried_out)
            self._tried_out = True
            reasons = [reason for reason in answers if reason]
            return reasons[0] if reasons else None
        return reason

    def unrestored(self) -> str | None:
        """Return what the last `load_state_dict` could not restore of the envs, or None."""
        if self._local is not None:
            return self._local.unrestored()
        if not self._started:
            return None
        return next((reason for reason in self._workers().ask("unrestored") if reason), None)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the noise, and the running episodes with the state of the envs."""
        return super().state_dict() if self._local is None else self._local.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the running episodes; where an env cannot, begin new ones and count the dropped ones.

        Episodes of envs in the process of the learner go on in that process.

        Raises:
            StorageError: the episodes are of another number of workers.
        """
        saved = state.get("episodes")
        if isinstance(saved, Mapping) or (saved is None and self._local is not None):
            self._start_local().load_state_dict(state)
            self.dropped_episodes = self._start_local().dropped_episodes
            return
        self._local, self._may_be_local = None, self._may_be_local and saved is None
        if saved is not None and len(saved) != self._config.num_workers:
            workers = self._config.num_workers
            raise StorageError(f"[collector] num_workers = {workers} here, {len(saved)} in the checkpoint")
        self._discard_pending_batches()
        self._journal = None
        super().load_state_dict(state)

    def _is_local(self) -> bool:
        """Return whether the envs are stepped in this process; decided before the first batch or by a checkpoint."""
        if self._may_be_local:
            self._may_be_local = False
            saved = saved_seconds(self._context, self._steps, self._config.num_workers)
            if saved < 0:
                log.info(
                    "the envs are stepped in this process: %d workers would make a batch %.1f ms longer ([collector] "
                    "processes = 'auto')",
                    self._config.num_workers,
                    -1e3 * saved,
                )
                self._start_local()
        return self._local is not None

    def _start_local(self) -> LocalCollector:
        self._may_be_local = False
        if self._local is None:
            config = LocalCollector.Config(frames_per_batch=self.batch_steps * self._spec.frame_skip)
            self._local = LocalCollector(config, self._seeds)
        return self._local

    def _collect_locally(self) -> CollectedBatch:
        assert self._local is not None
        batch = self._local.collect_columns()
        self._finished = self._local.episodes()
        return batch

    def _save_episodes(self) -> Any:
        return self._workers().ask("state")

    def _load_episodes(self, episodes: Any) -> None:
        self._workers().ask("load", each=episodes, slow=True)
        self._running = [int((np.asarray(saved["lengths"]) > 0).sum()) for saved in episodes]
        self._keep_journal([("load", saved) for saved in episodes])

    def _discard_pending_batches(self) -> None:
        while self._pool is not None and self._received < self._sent:
            self._pool.receive("batch")
            self._received += 1

    def _begin(self, pool: Pool, frame: int) -> None:
        super()._begin(pool, frame)
        self._keep_journal([("begin", self._reset_seed(frame), frame)] * len(self._shares))

    def _keep_journal(self, begin: Sequence[tuple[Any, ...]]) -> None:
        """Start a journal of the workers, if a new worker can repeat it to the same state."""
        if self._keeps and self.inexact() is None:
            self._journal = Journal(self._shares, begin)

    @property
    def _keeps(self) -> bool:
        return self._config.mode == "sync" and self._config.restarts > 0

    def _recovery(self, index: int) -> Sequence[tuple[Any, ...]]:
        return super()._recovery(index) if self._journal is None else self._journal.recovery(index)

    def _workers(self) -> Pool:
        self._may_be_local = False
        return super()._workers()

    def _allocate(self, processes: BaseContext, bundle: Bundle) -> list[tuple[list[Block], slice]]:
        blocks, self._noise, self._storages = self._blocks(processes, bundle, self._ahead + 1)
        self._batches = [block.tensors() for block in blocks]
        return [(blocks, share) for share in self._shares]
