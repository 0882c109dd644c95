"""What the collectors have in common whose worker processes act: weights that are published, and workers replaced."""

from __future__ import annotations

import logging
import multiprocessing
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import Tensor

from rlcore import Context
from rlcore.collectors import EnvCollector
from rlcore.envs import inexact_env
from rlcore.types import CollectedBatch
from rlcore_plugin_parallel import memory
from rlcore_plugin_parallel.acting_config import ActingConfig
from rlcore_plugin_parallel.bundle import Bundle
from rlcore_plugin_parallel.pool import Pool
from rlcore_plugin_parallel.split import check_transforms, shares_of
from rlcore_plugin_parallel.worker import Assignment

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

    from rlcore.collectors import BatchStorage

log = logging.getLogger(__name__)

POLICY_LAG: Final = ("collector", "policy_lag")


class WorkersBase(EnvCollector):
    """Steps the envs in worker processes with copies of the policy, which write into memory that the learner sees.

    Weights go into shared memory at the end of an iteration, as one version; workers hear of it with their next batch.

    Args:
        config: of the collector.
        context: of the run.
        ahead: how many updates of the weights a batch may be behind; 0 where workers wait for the learner.
        batch_envs: the envs of a batch; default: all.

    Attributes:
        lags: by how many updates of the weights the policies of the last batch are behind the learner's.
        dropped_episodes: running episodes that resumes and replaced workers could not go on with.
    """

    Config = ActingConfig

    def __init__(self, config: ActingConfig, context: Context, ahead: int, batch_envs: int | None = None) -> None:
        spec = context.env_spec
        self._shares = shares_of(spec, config.num_workers)
        check_transforms(context.transforms, context.env.spec.observation_space, spec.num_envs, self._shares)
        # the envs and the noise are those of the collector `local`
        super().__init__(config.frames_per_batch, context, context.for_component("collector", "local"), batch_envs)
        self.lags: list[int] = []
        self._config = config
        self._ahead = ahead
        self._lag_of_envs = torch.zeros(self.batch_envs, 1, 1, dtype=torch.int64)
        if ahead:
            self.writes = (*self.writes, POLICY_LAG)
        self._running = [0] * config.num_workers
        self._begun_again = False  # whether a worker that was replaced began new episodes
        self._published = -1
        self._written = False
        self._tried_out = False  # whether the envs know if their state can be saved
        self._pool: Pool | None = None

    @property
    def replaced_workers(self) -> int:  # type: ignore[override]
        """How many workers were replaced since this process began."""
        return 0 if self._pool is None else self._pool.replaced

    def metrics(self) -> dict[str, float]:
        """Return `policy_lag`, the largest of the last batch, and how many workers were replaced, if any were."""
        lag = {"policy_lag": float(max(self.lags, default=0))}
        if not self.replaced_workers:
            return lag
        return {**lag, "replaced_workers": self.replaced_workers, "dropped_episodes": self.dropped_episodes}

    def update_model(self) -> None:
        """Write the weights that the learner has now into shared memory; workers use them from their next batch on."""
        if self._pool is not None:
            self._write_weights()

    def pids(self) -> list[int]:
        """Return the numbers of the worker processes, which are started if need be."""
        return self._workers().pids

    def close(self) -> None:
        """End the workers, who close their envs."""
        if self._pool is not None:
            self._pool.close()
        self._context.env.close()

    def inexact(self) -> str | None:
        """Return why a resume begins new episodes, or None when every env goes on in the middle of its episode."""
        if self._config.mode == "async":
            return "workers collect ahead of the learner (mode = 'async'); a resume begins new episodes"
        return inexact_env(self._context.env)

    def _begin(self, pool: Pool, frame: int) -> None:
        """Begin an episode in every env."""
        pool.ask("begin", self._reset_seed(frame), frame)
        self._started = True

    def _send(self, pool: Pool, frame: int, batch: int, noise: Tensor, workers: slice) -> None:
        """Let workers collect a batch into its place.

        Args:
            pool: of the workers.
            frame: of the run.
            batch: its number.
            noise: the place of its noise, `[time, env, ...]`.
            workers: which of them.
        """
        with torch.inference_mode():
            noise.copy_(self._draw_noise())
        pool.send("collect", batch, frame, self._published, only=workers)

    def _finish(self, storage: BatchStorage, lags: Iterable[tuple[slice, int]]) -> CollectedBatch:
        """Return a batch that says how old its policies were, where workers are ahead.

        Args:
            storage: where it was written.
            lags: envs of the batch, and the lag of their policy.
        """
        if self._begun_again:
            self._forget_episodes()
            self._begun_again = False
        batch = storage.batch()
        if self._ahead:
            for envs, lag in lags:
                self._lag_of_envs[envs] = lag
            lag_of_rows = self._lag_of_envs.expand(-1, self._steps, -1)
            batch = CollectedBatch({**batch.columns, POLICY_LAG: lag_of_rows}, batch.mask)
        return self._on_device(batch)

    def _running_episodes(self) -> int:
        return sum(self._running)

    @property
    def _keeps(self) -> bool:
        """Whether workers hand over their state from time to time, so that others can take their places."""
        return False

    def _recovery(self, index: int) -> Sequence[tuple[Any, ...]]:
        """Return the messages that bring a new process to where a worker was, or let it begin new episodes."""
        if not self._started:
            return ()
        log.warning("%d running episodes of collector worker %d are dropped", self._running[index], index)
        self.dropped_episodes += self._running[index]
        self._running[index] = 0
        self._begun_again = True
        seed = self._seeds.seed(f"worker {index} begins again, time {self.replaced_workers}") % 2**31
        return (("begin", seed, self._context.progress.frames),)

    def _publish(self) -> None:
        """Tell of the weights that were written since the last batch; workers hear of them with the next one."""
        if not self._written and self._published < 0:
            self._write_weights()
        self._published += self._written
        self._written = False

    def _write_weights(self) -> None:
        """Write the weights of the learner where no worker reads.

        There are as many places as a batch may be updates behind, and one. A worker that reads has one batch to begin,
        before which no more updates than that can follow the one it was told of, so none comes round to its place.
        """
        place = (self._published + 1) % len(self._weights)
        memory.copy_weights(memory.weights_of(self._context.model), self._weights[place])  # type: ignore[arg-type]
        self._written = True

    def _workers(self) -> Pool:
        """Return the workers, which are started at the first call; the envs of this process are not needed any more."""
        if self._pool is None:
            self._pool = self._start()
            self._context.env.close()
        return self._pool

    @abstractmethod
    def _allocate(self, processes: BaseContext, bundle: Bundle) -> list[tuple[list[memory.Block], slice]]:
        """Make the memory of the batches; return for each worker its blocks, and which envs of these are its own.

        Args:
            processes: with which the workers are started.
            bundle: what they are made of.
        """

    def _blocks(
        self, processes: BaseContext, bundle: Bundle, count: int
    ) -> tuple[list[memory.Block], list[Tensor], list[BatchStorage]]:
        """Return so many blocks for batches, the noise in each, and the storage over each."""
        space = self._spec.observation_space
        fields = memory.batch_fields(self._steps, self.batch_envs, space, bundle.given(self._steps, self.batch_envs))
        blocks = [memory.Block(processes, fields) for _ in range(count)]
        tensors = [block.tensors() for block in blocks]
        noise = [entries["policy", "noise"] for entries in tensors]
        return blocks, noise, [memory.batch_storage(entries, self._masked, space) for entries in tensors]

    def _start(self) -> Pool:
        config, spec, context = self._config, self._spec, self._context
        model = context.model
        packed = Bundle(context.make_env_for, spec, context.transforms, model, context.plugin_files).pack()
        processes = multiprocessing.get_context(config.start_method)
        places = self._allocate(processes, Bundle.unpack(packed))
        weights = memory.weight_fields(model)  # type: ignore[arg-type]
        versions = [memory.Block(processes, weights) for _ in range(self._ahead + 1)]
        self._weights = [block.tensors() for block in versions]
        counters = memory.Counters(processes, config.num_workers)
        folder, first = context.run.folder, context.first_env
        assignments = [
            Assignment(
                index=index,
                envs=share,
                first_env=first,
                seed=context.seed(f"worker {index} from {first}" if first else f"worker {index}") % 2**63,
                packed=packed,
                batches=batches,
                rows=rows,
                weights=versions,
                counters=counters,
                all_rows=config.exact_rows and self.batch_envs == spec.num_envs,
                keeps=self._keeps,
                stacks=None if folder is None else str(folder / f"stacks-worker-{index}.txt"),
            )
            for index, (share, (batches, rows)) in enumerate(zip(self._shares, places, strict=True))
        ]
        return self._pool_of(assignments, counters)

    def _pool_of(self, assignments: Sequence[Assignment], counters: memory.Counters) -> Pool:
        """Return the workers with these assignments, started."""
        config, heart = self._config, self._context.heart
        return Pool(config.start_method, assignments, counters, heart, config.timeout, config.restarts, self._recovery)
