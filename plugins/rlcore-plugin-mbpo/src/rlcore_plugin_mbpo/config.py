"""The keys that the buffers of this plugin add to those of the buffers that they fill from."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, Field, field_validator, model_validator

from rlcore.types import Interval


class ImaginationConfig(BaseModel, extra="forbid"):
    """How the dynamics are learned, how much is imagined, and what of it is trained on."""

    real_share: float = Field(
        0.05, ge=0, le=1, description="share of a minibatch that is real; 1 imagines nothing and learns no dynamics"
    )
    penalty: float = Field(
        0.0, ge=0, allow_inf_nan=False, description="times the largest deviation of the members, off imagined rewards"
    )
    dynamics_every: Interval | None = Field(
        250, description="interval at which the dynamics learn, on the clock of the run; default of a dataset: once"
    )
    dynamics_lr: float = Field(1e-3, gt=0, allow_inf_nan=False, description="learning rate of the dynamics, by Adam")
    dynamics_weight_decay: float = Field(5e-5, ge=0, allow_inf_nan=False, description="of the weights of the dynamics")
    dynamics_minibatch_size: int = Field(256, ge=1, description="rows for each member in an update of the dynamics")
    dynamics_patience: int = Field(
        5, ge=1, description="epochs without a better error on held-out rows after which the dynamics stop learning"
    )
    dynamics_max_epochs: int = Field(200, ge=1, description="epochs after which they stop in any case")
    held_out: float = Field(
        0.2, gt=0, lt=1, description="share of the rows, at most 5,000, that the dynamics do not learn from"
    )
    rollouts_every: Interval = Field(
        250, description="interval at which rollouts are imagined, on the clock of the run"
    )
    rollouts: int = Field(10_000, ge=1, description="rollouts that begin each time, from real observations")
    rollout_length: int | list[int] = Field(
        1, description="steps of a rollout; or [first, last, begin, end]: from first to last between two times"
    )
    imagined_capacity: int = Field(100_000, ge=1, description="imagined transitions that are kept")
    range_margin: float = Field(
        1.0, ge=0, allow_inf_nan=False, description="how far beyond the data a rollout may go, in widths of their range"
    )

    @field_validator("rollout_length")
    @classmethod
    def _is_a_schedule(cls, value: int | list[int]) -> int | list[int]:
        if isinstance(value, int):
            if value < 1:
                raise ValueError(f"a rollout has at least one step, not {value}")
            return value
        if len(value) != 4:
            raise ValueError("a schedule is [first, last, begin, end], as [1, 15, 20_000, 100_000], or one length")
        first, last, begin, end = value
        if min(first, last) < 1:
            raise ValueError(f"a rollout has at least one step, not {min(first, last)}")
        if not 0 <= begin < end:
            raise ValueError(f"the schedule from {begin} to {end} must begin at 0 or later, and end after that")
        return value

    @model_validator(mode="after")
    def _mixes_what_is_alike(self) -> Self:
        if (steps := getattr(self, "n_steps", 1)) != 1:
            raise ValueError(
                f"n_steps = {steps}: imagined transitions are of one step, and so are all here; leave it out"
            )
        size: int = getattr(self, "minibatch_size", 1)
        real = self.real_rows(size)
        if 0 < self.real_share < 1 and real in (0, size):
            other = "imagined" if real else "real"
            raise ValueError(
                f"real_share = {self.real_share} of minibatch_size = {size} leaves no {other} row; take 0 or 1 to mean "
                "that, or a larger minibatch"
            )
        return self

    def real_rows(self, size: int) -> int:
        """Return how many rows of so many are real."""
        return round(self.real_share * size)

    def length_at(self, now: int) -> int:
        """Return the steps of a rollout at a time of the clock (Janner et al., 2019, appendix C)."""
        if isinstance(self.rollout_length, int):
            return self.rollout_length
        first, last, begin, end = self.rollout_length
        moved = min(1.0, max(0.0, (now - begin) / (end - begin)))
        return int(first + moved * (last - first))
