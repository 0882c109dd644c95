"""The base of collectors with worker processes that act: publishing weights and replacing workers."""

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
from rlcore.types import CollectedBatch, Part, with_defaults
from rlcore_plugin_parallel import memory
from rlcore_plugin_parallel.acting_config import ActingConfig
from rlcore_plugin_parallel.bundle import Bundle
from rlcore_plugin_parallel.forks import check_fork
from rlcore_plugin_parallel.pool import Pool
from rlcore_plugin_parallel.split import check_transforms, shares_of
from rlcore_plugin_parallel.worker import Assignment

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

    from rlcore.collectors import BatchStorage

log = logging.getLogger(__name__)

POLICY_LAG: Final = ("collector", "policy_lag")


class WorkersBase(EnvCollector):
    """Steps the envs in worker processes with copies of the policy, which write into shared memory.

    At the end of an iteration the weights are written to shared memory as one version, which workers use from their
    next batch on.

    Args:
        config: of the collector.
        context: of the run.
        ahead: number of updates that a batch may be behind the learner; 0 where workers wait for it.
        batch_envs: number of envs in a batch; default: all.

    Attributes:
        lags: numbers of updates by which the policies of the last batch are behind the learner.
        dropped_episodes: number of running episodes that a resume or a replaced worker could not continue.
    """

    Config = ActingConfig

    def __init__(self, config: ActingConfig, context: Context, ahead: int, batch_envs: int | None = None) -> None:
        spec = context.env_spec
        check_fork(config.start_method, context.env)
        self._shares = shares_of(spec, config.num_workers)
        check_transforms(context.transforms, context.env.spec.observation_space, spec.num_envs, self._shares)
        # with the seeds of the collector `local`, so that envs and noise are the same
        super().__init__(config.frames_per_batch, context, context.for_component("collector", "local"), batch_envs)
        self.lags: list[int] = []
        self._config = config
        self._ahead = ahead
        self._lag_of_envs = torch.zeros(self.batch_envs, 1, 1, dtype=torch.int64)
        if ahead:
            self.writes = (*self.writes, POLICY_LAG)
        self._running = [0] * config.num_workers
        self._has_new_episodes = False  # whether a replaced worker began new episodes
        self._published = -1
        self._written = False
        self._tried_out = False  # whether the envs know if their state can be saved
        self._pool: Pool | None = None

    @property
    def replaced_workers(self) -> int:  # type: ignore[override]
        """Number of workers replaced since this process began."""
        return 0 if self._pool is None else self._pool.replaced

    def metrics(self) -> dict[str, float]:
        """Return `policy_lag`, the largest lag of the last batch, and the number of replaced workers, if any."""
        lag = {"policy_lag": float(max(self.lags, default=0))}
        if not self.replaced_workers:
            return lag
        return {**lag, "replaced_workers": self.replaced_workers, "dropped_episodes": self.dropped_episodes}

    def update_model(self) -> None:
        """Write the weights of the learner to shared memory; workers use them from their next batch on."""
        if self._pool is not None:
            self._write_weights()

    def pids(self) -> list[int]:
        """Return the pids of the worker processes; start them if they are not running."""
        return self._workers().pids

    def close(self) -> None:
        """End the workers, which close their envs."""
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
        """Send workers the order to collect a batch.

        Args:
            pool: of the workers.
            frame: of the run.
            batch: number of the batch.
            noise: memory for the noise of the batch, `[time, env, ...]`.
            workers: the workers that collect it.
        """
        # drawn here and not by the workers, so that the noise is that of the collector `local`
        with torch.inference_mode():
            noise.copy_(self._draw_noise())
        pool.send("collect", batch, frame, self._published, only=workers)

    def _forget_episodes(self) -> None:
        """Let parts drop what they keep of running episodes, some of which do not go on."""
        built = self._context.built
        hooks = built["hooks"].hooks if "hooks" in built else ()
        for part in (*self._context.transforms, built.get("buffer"), *(hook.instance for hook in hooks)):
            with_defaults(part, Part).forget_episodes()

    def _finish(self, storage: BatchStorage, lags: Iterable[tuple[slice, int]]) -> CollectedBatch:
        """Return a collected batch, with the entry `policy_lag` where workers are ahead.

        Args:
            storage: holds the batch.
            lags: envs of the batch, with the lag of their policy.
        """
        if self._has_new_episodes:
            self._forget_episodes()
            self._has_new_episodes = False
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
        """Whether workers send their state from time to time, so that a new worker can replace one."""
        return False

    def _recovery(self, index: int) -> Sequence[tuple[Any, ...]]:
        """Return the messages that bring a new worker to the state of a lost one, or let it begin new episodes."""
        if not self._started:
            return ()
        log.warning("%d running episodes of collector worker %d are dropped", self._running[index], index)
        self.dropped_episodes += self._running[index]
        self._running[index] = 0
        self._has_new_episodes = True
        seed = self._seeds.seed(f"worker {index} begins again, time {self.replaced_workers}") % 2**31
        return (("begin", seed, self._context.progress.frames),)

    def _publish(self) -> None:
        """Count the weights written since the last batch as a version, which workers get with the next order."""
        if not self._written and self._published < 0:
            self._write_weights()
        self._published += self._written
        self._written = False

    def _write_weights(self) -> None:
        """Write the weights of the learner to a version that no worker reads."""
        # one more version than a batch may be updates behind: a worker reads a version before its batch, and until then
        # so many updates can follow, none of which comes round to that version
        place = (self._published + 1) % len(self._weights)
        memory.copy_weights(memory.weights_of(self._context.model), self._weights[place])  # type: ignore[arg-type]
        self._written = True

    def _workers(self) -> Pool:
        """Return the workers; the first call starts them, and closes the envs of this process."""
        if self._pool is None:
            self._pool = self._start()
            self._context.env.close()
        return self._pool

    @abstractmethod
    def _allocate(self, processes: BaseContext, bundle: Bundle) -> list[tuple[list[memory.Block], slice]]:
        """Allocate the memory of the batches; return the blocks of each worker, and its envs in them.

        Args:
            processes: starts the workers.
            bundle: parts of a worker.
        """

    def _blocks(
        self, processes: BaseContext, bundle: Bundle, count: int
    ) -> tuple[list[memory.Block], list[Tensor], list[BatchStorage]]:
        """Return `count` blocks for batches, the noise in each, and the storage over each."""
        space = self._spec.observation_space
        fields = memory.batch_fields(self._steps, self.batch_envs, space, bundle.outputs(self._steps, self.batch_envs))
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
        """Return a started pool of workers with these assignments."""
        config, heart = self._config, self._context.heart
        return Pool(config.start_method, assignments, counters, heart, config.timeout, config.restarts, self._recovery)
