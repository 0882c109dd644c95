"""The collector `workers`: every worker process steps a share of the envs with a copy of the policy."""

from __future__ import annotations

import itertools
import logging
import multiprocessing
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
import torch
from pydantic import Field

from rlcore import Context
from rlcore.collectors import EnvCollector, LocalCollector
from rlcore.envs import inexact_env
from rlcore.errors import StorageError
from rlcore.types import CollectedBatch
from rlcore_plugin_parallel import memory
from rlcore_plugin_parallel.bundle import Bundle
from rlcore_plugin_parallel.journal import Gathered, Journal
from rlcore_plugin_parallel.pool import Pool
from rlcore_plugin_parallel.split import check_transforms, shares_of
from rlcore_plugin_parallel.worker import Assignment
from rlcore_plugin_parallel.workers_config import WorkersConfig
from rlcore_plugin_parallel.worth import saved_seconds

log = logging.getLogger(__name__)

POLICY_LAG: Final = ("collector", "policy_lag")


class WorkersCollector(EnvCollector):
    """Steps the envs in worker processes, which write into memory that the learner sees.

    With `mode = "sync"` all workers collect a batch with the weights that the learner has, and wait while it learns.
    With `mode = "async"` they go on with the next batches, up to `max_lag` of them. A batch `[env, time]` is complete
    in both: it has the same steps of every env, in the order of the envs. It is a view of memory that the next call
    overwrites.

    A worker that ends or hangs is replaced. Where `mode = "sync"` and the envs can be saved, batches are those that
    they would have been; else its envs begin new episodes, and those that were running are counted.

    Attributes:
        lags: per worker, by how many updates of the weights its policy of the last batch is behind the learner's.
        dropped_episodes: running episodes that resumes and replaced workers could not go on with.
    """

    class Config(WorkersConfig):
        """How many workers there are, and how they keep step with the learner."""

        mode: Literal["sync", "async"] = Field("sync", description="whether workers wait while the learner learns")
        max_lag: int = Field(
            1, ge=1, description="async: batches, and so updates of weights, that workers may be ahead"
        )
        processes: Literal["auto", "always"] = Field(
            "auto",
            description="auto: in mode sync with exact_rows, envs whose steps take less than processes cost are "
            "stepped in the process of the learner, with the same results",
        )
        exact_rows: bool = Field(
            True,
            description="act on rows of all envs, so that results do not depend on num_workers to the bit; false for "
            "large networks",
        )

    def __init__(self, config: Config, context: Context) -> None:
        spec = context.env_spec
        self._shares = shares_of(spec, config.num_workers)
        check_transforms(context.transforms, context.env.spec.observation_space, spec.num_envs, self._shares)
        # the envs and the noise are those of the collector `local`
        super().__init__(config.frames_per_batch, context, context.for_component("collector", "local"))
        self.lags = [0] * config.num_workers
        self._config = config
        self._ahead = 0 if config.mode == "sync" else config.max_lag
        self._lag_of_envs = torch.zeros(spec.num_envs, 1, 1, dtype=torch.int64)
        if self._ahead:
            self.writes = (*self.writes, POLICY_LAG)
        self._running = [0] * config.num_workers
        self._journal: Journal | None = None
        self._begun_again = False  # whether a worker that was replaced began new episodes
        self._taken = 0
        self._sent = 0
        self._published = -1
        self._written = False
        self._tried_out = False  # whether the envs know if their state can be saved
        self._pool: Pool | None = None
        self._here: LocalCollector | None = None  # steps the envs in this process, where that takes less time
        self._may_be_here = config.processes == "auto" and config.mode == "sync" and config.exact_rows and self._is_here

    def collect_columns(self) -> CollectedBatch:
        """Return the next batch as its tensors.

        Raises:
            EnvError: a worker failed, hangs or is gone, or a value is not finite; nothing of the batch reaches the
                buffer.
        """
        if self._is_worth_less():
            return self._collect_here()
        pool = self._workers()
        frame = self._context.progress.frames
        self._publish()
        self._policy.refresh()  # the noise is sampled here, and may depend on the progress
        if not self._started:
            self._begin(pool, frame)
        while self._sent <= self._taken + self._ahead:
            self._send(pool, frame)
        answers: list[Gathered] = pool.receive("batch")
        storage = self._storages[self._taken % len(self._storages)]
        self._taken += 1
        self.lags = [self._published - said.version for said in answers]
        self._running = [said.running for said in answers]
        finished = sorted(
            itertools.chain(*(said.episodes for said in answers)), key=lambda at: (at[0], at[1].env_index)
        )
        self._finished = [episode for _, episode in finished]
        if self._journal is not None:
            assert storage.actions is not None
            self._journal.add(storage.actions, answers)
        if self._begun_again:
            self._forget_episodes()
            self._begun_again = False
        return self._on_device(self._with_lags(storage.batch()))

    @property
    def replaced_workers(self) -> int:
        """How many workers were replaced since this process began."""
        return 0 if self._pool is None else self._pool.replaced

    def metrics(self) -> dict[str, float]:
        """Return `policy_lag`, the largest of the last batch, and how many workers were replaced, if any were."""
        lag = {"policy_lag": float(max(self.lags))}
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
        if inexact_env(self._context.env) is None and not self._is_worth_less():
            answers = self._workers().ask("inexact", slow=not self._tried_out)
            self._tried_out = True
            reasons = [reason for reason in answers if reason]
            return reasons[0] if reasons else None
        return inexact_env(self._context.env)

    def unrestored(self) -> str | None:
        """Return what the last `load_state_dict` could not bring back of the envs, or None."""
        if self._here is not None:
            return self._here.unrestored()
        if not self._started:
            return None
        return next((reason for reason in self._workers().ask("unrestored") if reason), None)

    def state_dict(self) -> dict[str, Any]:
        """Return the exploration noise's position, and the running episodes with the state of the envs."""
        return super().state_dict() if self._here is None else self._here.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on with the saved episodes; where an env cannot, begin new ones and count those that are dropped.

        Episodes that were stepped in the process of the learner are stepped there again.

        Raises:
            StorageError: they are of another number of workers, each of which had a share.
        """
        saved = state.get("episodes")
        if isinstance(saved, Mapping) or (saved is None and self._here is not None):
            self._go_on_here().load_state_dict(state)
            self.dropped_episodes = self._go_on_here().dropped_episodes
            return
        self._here, self._may_be_here = None, self._may_be_here and saved is None
        if saved is not None and len(saved) != self._config.num_workers:
            workers = self._config.num_workers
            raise StorageError(f"[collector] num_workers = {workers} here, {len(saved)} in the checkpoint")
        self._discard_what_is_under_way()
        self._journal = None
        super().load_state_dict(state)

    def _with_lags(self, batch: CollectedBatch) -> CollectedBatch:
        """Return a batch that says how old its policy was, where workers are ahead."""
        if not self._ahead:
            return batch
        for share, lag in zip(self._shares, self.lags, strict=True):
            self._lag_of_envs[share] = lag
        lags = self._lag_of_envs.expand(-1, self._steps, -1)
        return CollectedBatch({**batch.columns, POLICY_LAG: lags}, batch.mask)

    def _is_worth_less(self) -> bool:
        """Return whether the envs are stepped here; decided before the first batch, unless a checkpoint said it."""
        if self._may_be_here:
            self._may_be_here = False
            saved = saved_seconds(self._context, self._steps, self._config.num_workers)
            if saved < 0:
                log.info(
                    "the envs are stepped in this process: %d workers would make a batch %.1f ms longer ([collector] "
                    "processes = 'auto')",
                    self._config.num_workers,
                    -1e3 * saved,
                )
                self._go_on_here()
        return self._here is not None

    def _go_on_here(self) -> LocalCollector:
        self._may_be_here = False
        if self._here is None:
            config = LocalCollector.Config(frames_per_batch=self.batch_steps * self._spec.frame_skip)
            self._here = LocalCollector(config, self._seeds)
        return self._here

    def _collect_here(self) -> CollectedBatch:
        assert self._here is not None
        batch = self._here.collect_columns()
        self._finished = self._here.episodes()
        return batch

    def _running_episodes(self) -> int:
        return sum(self._running)

    def _save_episodes(self) -> Any:
        return self._workers().ask("state")

    def _load_episodes(self, episodes: Any) -> None:
        self._workers().ask("load", each=episodes, slow=True)
        self._running = [int((np.asarray(saved["lengths"]) > 0).sum()) for saved in episodes]
        self._keep_journal([("load", saved) for saved in episodes])

    def _discard_what_is_under_way(self) -> None:
        while self._pool is not None and self._taken < self._sent:
            self._pool.receive("batch")
            self._taken += 1

    def _begin(self, pool: Pool, frame: int) -> None:
        """Begin an episode in every env."""
        message = ("begin", self._reset_seed(frame), frame)
        pool.ask(*message)
        self._keep_journal([message] * len(self._shares))
        self._started = True

    def _keep_journal(self, begin: Sequence[tuple[Any, ...]]) -> None:
        """Note where the workers are, if those that take their places can get there."""
        if self._keeps and self.inexact() is None:
            self._journal = Journal(self._shares, begin)

    @property
    def _keeps(self) -> bool:
        return self._config.mode == "sync" and self._config.restarts > 0

    def _recovery(self, index: int) -> Sequence[tuple[Any, ...]]:
        """Return the messages that bring a new process to where a worker was, or let it begin new episodes."""
        if self._journal is not None:
            return self._journal.recovery(index)
        if not self._started:
            return ()
        log.warning("%d running episodes of collector worker %d are dropped", self._running[index], index)
        self.dropped_episodes += self._running[index]
        self._running[index] = 0
        self._begun_again = True
        seed = self._seeds.seed(f"worker {index} begins again, time {self.replaced_workers}") % 2**31
        return (("begin", seed, self._context.progress.frames),)

    def _send(self, pool: Pool, frame: int) -> None:
        """Let the workers collect one further batch."""
        with torch.inference_mode():
            noise = self._draw_noise()
        self._noise[self._sent % len(self._noise)].copy_(noise)
        pool.send("collect", self._sent, frame, self._published)
        self._sent += 1

    def _publish(self) -> None:
        """Tell of the weights that were written since the last batch; workers hear of them with the next one."""
        if not self._written and self._published < 0:
            self._write_weights()
        self._published += self._written
        self._written = False

    def _write_weights(self) -> None:
        """Write the weights of the learner where no worker reads.

        There are as many places as batches can be under way. A worker that reads has one batch to begin, before which
        no more updates than that can follow the one it was told of, so none comes round to its place.
        """
        place = (self._published + 1) % len(self._weights)
        memory.copy_weights(memory.weights_of(self._context.model), self._weights[place])  # type: ignore[arg-type]
        self._written = True

    def _workers(self) -> Pool:
        """Return the workers, which are started at the first call; the envs of this process are not needed any more."""
        self._may_be_here = False
        if self._pool is None:
            self._pool = self._start()
            self._context.env.close()
        return self._pool

    def _start(self) -> Pool:
        config, spec, model = self._config, self._spec, self._context.model
        packed = Bundle(self._context.make_env_for, spec, self._context.transforms, model).pack()
        given = Bundle.unpack(packed).given(self._steps)
        processes = multiprocessing.get_context(config.start_method)
        fields = memory.batch_fields(self._steps, spec.num_envs, spec.observation_space, given)
        weights = memory.weight_fields(model)  # type: ignore[arg-type]
        batches = [memory.Block(processes, fields) for _ in range(self._ahead + 1)]
        versions = [memory.Block(processes, weights) for _ in range(self._ahead + 1)]
        self._batches = tensors = [block.tensors() for block in batches]
        self._noise = [entries["policy", "noise"] for entries in tensors]
        self._storages = [memory.batch_storage(entries, self._masked, spec.observation_space) for entries in tensors]
        self._weights = [block.tensors() for block in versions]
        counters = memory.Counters(processes, config.num_workers)
        folder, first = self._context.run.folder, self._context.first_env
        assignments = [
            Assignment(
                index=index,
                envs=share,
                first_env=first,
                seed=self._context.seed(f"worker {index} from {first}" if first else f"worker {index}") % 2**63,
                packed=packed,
                batches=batches,
                weights=versions,
                counters=counters,
                all_rows=config.exact_rows,
                keeps=self._keeps,
                stacks=None if folder is None else str(folder / f"stacks-worker-{index}.txt"),
            )
            for index, share in enumerate(self._shares)
        ]
        return self._pool_of(assignments, counters)

    def _pool_of(self, assignments: Sequence[Assignment], counters: memory.Counters) -> Pool:
        """Return the workers with these assignments, started."""
        config, heart = self._config, self._context.heart
        return Pool(config.start_method, assignments, counters, heart, config.timeout, config.restarts, self._recovery)
