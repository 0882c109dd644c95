"""The keys of the collector `workers`."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from rlcore_plugin_parallel.workers_config import WorkersConfig


class ActingConfig(WorkersConfig):
    """How many workers there are, and how they keep step with the learner."""

    frames_per_batch: int = Field(
        1000,
        ge=1,
        description="frames per batch, over all of its envs: those of all workers, or of one with order ready",
    )
    mode: Literal["sync", "async"] = Field("sync", description="whether workers wait while the learner learns")
    max_lag: int = Field(1, ge=1, description="async: updates of weights that a batch may be behind")
    order: Literal["given", "ready"] = Field(
        "given",
        description="async: given, each batch is of all envs, in their order; ready, of one worker, in the order in "
        "which workers are done",
    )
    processes: Literal["auto", "always"] = Field(
        "auto",
        description="auto: in mode sync with exact_rows, envs whose steps take less than processes cost are "
        "stepped in the process of the learner, with the same results",
    )
    exact_rows: bool = Field(
        True,
        description="act on rows of all envs, so that results do not depend on num_workers to the bit; false for "
        "large networks; with order ready, workers always act on their own",
    )

    @model_validator(mode="after")
    def _ready_is_asynchronous(self) -> Self:
        if self.order == "ready" and self.mode == "sync":
            raise ValueError(
                "order = 'ready' with mode = 'sync': workers that wait for the learner give one batch together; "
                "write mode = 'async', or leave order out"
            )
        return self
