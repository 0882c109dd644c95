"""The keys of every collector whose envs step in worker processes."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field


class WorkersConfig(BaseModel, extra="forbid"):
    """How many workers there are, how they start, and what is done about those that are lost."""

    num_workers: int = Field(2, ge=1, description="worker processes; must divide [env] num_envs")
    frames_per_batch: int = Field(1000, ge=1, description="frames per batch, over all envs of all workers")
    restarts: int = Field(
        3,
        ge=0,
        description="workers that are replaced when they end or hang, before the run ends",
        json_schema_extra={"free_at_resume": True},
    )
    start_method: Literal["forkserver", "spawn", "fork"] = Field(
        "forkserver", description="how processes start", json_schema_extra={"free_at_resume": True}
    )
    timeout: float = Field(
        60.0,
        gt=0,
        description="seconds without a step after which a worker is taken to hang",
        json_schema_extra={"free_at_resume": True},
    )
