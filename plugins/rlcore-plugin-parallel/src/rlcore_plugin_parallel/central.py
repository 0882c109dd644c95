"""The collector `central`: envs in worker processes, and one policy for all of them in the process of the learner."""

from __future__ import annotations

import multiprocessing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import Field

from rlcore import ConfigError, Context
from rlcore.collectors import LocalCollector
from rlcore_plugin_parallel import memory
from rlcore_plugin_parallel.bundle import Bundle
from rlcore_plugin_parallel.env_processes import EnvPart, EnvProcesses
from rlcore_plugin_parallel.forks import check_fork
from rlcore_plugin_parallel.halves import Halves
from rlcore_plugin_parallel.split import check_transforms, shares_of
from rlcore_plugin_parallel.workers_config import WorkersConfig

if TYPE_CHECKING:
    from rlcore.types import CollectedBatch


class CentralCollector(LocalCollector):
    """Steps the envs in worker processes, and acts for all of them at once, on the device of the learner.

    Results are those of the collector `local` bit for bit, while the envs step at the same time. With `alternating` two
    halves of the envs take turns: while one steps, the policy acts for the other.
    """

    class Config(WorkersConfig):
        """Keys of `[collector]`."""

        alternating: bool = Field(
            False, description="two halves of the workers take turns: one steps while the policy acts for the other"
        )
        exact_rows: bool = Field(
            True,
            description="alternating: act on rows of all envs, so that results are those of local to the bit; false "
            "for large networks",
        )

    def __init__(self, config: Config, context: Context) -> None:
        spec = context.env_spec
        check_fork(config.start_method, context.env)
        shares = shares_of(spec, config.num_workers)
        self._processes = EnvProcesses(context, shares, config.start_method, config.timeout, config.restarts)
        self._local_env = context.env
        env = EnvPart(self._processes, context.env.spec, slice(0, config.num_workers))
        # with the seeds of the collector `local`, so that results are the same
        of_local = replace(context.for_component("collector", "local"), parts={**context.built, "env": env})
        super().__init__(LocalCollector.Config(frames_per_batch=config.frames_per_batch), of_local)
        if config.alternating:
            self._take_turns(config, context)

    @property
    def replaced_workers(self) -> int:  # type: ignore[override]
        """Number of workers replaced since this process began."""
        return self._processes.replaced

    def metrics(self) -> dict[str, float]:
        """Return the number of replaced workers, if any."""
        return {"replaced_workers": self.replaced_workers} if self.replaced_workers else {}

    def collect_columns(self) -> CollectedBatch:
        """Return the next batch.

        Raises:
            EnvError: a worker failed; or it ended or hangs and cannot be replaced; or a value is not finite.
        """
        self._processes.pool()  # started here, so that the time of the first step does not count their start
        return super().collect_columns()

    def pids(self) -> list[int]:
        """Return the pids of the worker processes; start them if they are not running."""
        return self._processes.pool().pids

    def close(self) -> None:
        """End the workers, which close their envs."""
        self._processes.close()
        self._local_env.close()

    def _take_turns(self, config: Config, context: Context) -> None:
        """Divide the workers into two halves that take turns.

        Raises:
            ConfigError: the number of workers is odd, or a transform cannot be divided.
        """
        spec, count = self._spec, config.num_workers
        if count % 2:
            raise ConfigError(
                f"[collector] num_workers = {count} with alternating = true: two halves of the workers take turns, so "
                "there must be an even number of them"
            )
        parts = [
            EnvPart(self._processes, context.env.spec, half)
            for half in (slice(0, count // 2), slice(count // 2, count))
        ]
        check_transforms(
            context.transforms, context.env.spec.observation_space, spec.num_envs, [part.share for part in parts]
        )
        self._stepper: Any = Halves(context, parts, config.exact_rows)
        packed = Bundle(context.make_env_for, spec, [], context.model, context.plugin_files).pack()
        bundle = Bundle.unpack(packed)
        fields = memory.batch_fields(self._steps, spec.num_envs, spec.observation_space, bundle.outputs(self._steps))
        tensors = memory.Block(multiprocessing.get_context("spawn"), fields).tensors()
        self._storage = memory.batch_storage(tensors, self._masked, spec.observation_space)
