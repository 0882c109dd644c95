"""The collector `actors`: every actor of Ray steps a share of the envs with a copy of the policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from pydantic import Field
from rlcore_plugin_parallel.collector import WorkersCollector
from rlcore_plugin_parallel.journal import Gathered
from rlcore_plugin_parallel.memory import Counters
from rlcore_plugin_parallel.pool import Pool
from rlcore_plugin_parallel.worker import Assignment
from torch import Tensor

from rlcore import Context
from rlcore.types import FREE_AT_RESUME
from rlcore_plugin_ray.env_pool import ActorPool, ActorWorker
from rlcore_plugin_ray.session import PlacementConfig, imported


class ActorsCollector(WorkersCollector):
    """Steps the envs in actors of Ray, which may be on other hosts; weights and batches go through Ray.

    All else is as with the collector `parallel:workers`: with `mode = "sync"` batches are those of `local` to the bit,
    with `mode = "async"` actors are up to `max_lag` batches ahead, and an actor that ends or hangs is replaced.

    Attributes:
        lags: per worker, by how many updates of the weights its policy of the last batch is behind the learner's.
        dropped_episodes: running episodes that resumes and replaced workers could not go on with.
    """

    class Config(PlacementConfig):
        """How many actors there are, which Ray they are of, and how they keep step with the learner."""

        num_workers: int = Field(2, ge=1, description="actors; must divide [env] num_envs")
        frames_per_batch: int = Field(1000, ge=1, description="frames per batch, over all envs of all actors")
        mode: Literal["sync", "async"] = Field("sync", description="whether actors wait while the learner learns")
        max_lag: int = Field(1, ge=1, description="async: batches, and so updates of weights, that actors may be ahead")
        restarts: int = Field(
            3,
            ge=0,
            description="actors that are replaced when they end or hang, before the run ends",
            json_schema_extra=FREE_AT_RESUME,
        )
        timeout: float = Field(
            60.0,
            gt=0,
            description="seconds without a step after which an actor is taken to hang",
            json_schema_extra=FREE_AT_RESUME,
        )
        exact_rows: bool = Field(
            True,
            description="act on rows of all envs, so that results do not depend on num_workers to the bit; false for "
            "large networks",
        )

    def __init__(self, config: Config, context: Context) -> None:
        imported("[collector] use")
        own = WorkersCollector.Config(
            num_workers=config.num_workers,
            frames_per_batch=config.frames_per_batch,
            mode=config.mode,
            order="given",
            max_lag=config.max_lag,
            restarts=config.restarts,
            timeout=config.timeout,
            exact_rows=config.exact_rows,
            processes="always",
            start_method="spawn",
        )
        super().__init__(own, context)
        self._placement = config
        self._put: tuple[int, Any] = (-1, None)  # the version of the weights that Ray has, and what it knows them by

    def _pool_of(self, assignments: Sequence[Assignment], counters: Counters) -> Pool:
        config, heart = self._config, self._context.heart
        return ActorPool(
            self._placement,
            assignments,
            counters,
            heart,
            config.timeout,
            config.restarts,
            self._recovery,
            self._inputs,
            self._outputs,
        )

    def _inputs(self, worker: ActorWorker, message: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return what an actor collects a batch with: the noise, and the weights where it has others."""
        _, batch, frame, version = message
        noise = self._noise[batch % len(self._noise)].clone()
        known, worker.version = worker.version, version
        return batch, frame, version, noise, None if known == version else self._weights_in_ray(version)

    def _weights_in_ray(self, version: int) -> Any:
        if self._put[0] != version:
            weights = self._weights[version % len(self._weights)]
            self._put = (version, imported("[collector] use").put({name: w.clone() for name, w in weights.items()}))
        return self._put[1]

    def _outputs(self, worker: ActorWorker, content: tuple[Gathered, dict[Any, Tensor]]) -> Gathered:
        """Write the batch of an actor where the learner reads it."""
        answer, tensors = content
        batch = self._batches[self._received % len(self._batches)]
        with torch.inference_mode():
            for name, value in tensors.items():
                batch[name][:, worker.task.envs] = value
        return answer
