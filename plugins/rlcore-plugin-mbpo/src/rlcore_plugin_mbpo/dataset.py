"""The buffer of MOPO: a dataset, and beside its transitions those that a model of the env imagines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator
from rlcore_plugin_datasets.buffer import DatasetBuffer

from rlcore.buffers import Minibatch
from rlcore.types import Context, Every, Interval
from rlcore_plugin_mbpo.config import ImaginationConfig
from rlcore_plugin_mbpo.imagination import Imagination
from rlcore_plugin_mbpo.replay import STATE


class ImaginedDataset(DatasetBuffer):
    """A dataset whose minibatches are mostly imagined, with lower rewards where the dynamics are unsure.

    With `penalty` above 0 imagined rewards are lower by so many times the largest standard deviation of the members
    (Yu et al., 2020, arXiv 2005.13239, algorithm 2). The dynamics learn once, before the first update, unless
    `dynamics_every` says otherwise. Minibatches are those of `imagined-replay`.

    Attributes:
        hooks: what logs the figures of the dynamics and of the rollouts.
    """

    shares_observations: ClassVar[bool] = False  # the dynamics train on all rows where they lie

    class Config(ImaginationConfig, DatasetBuffer.Config):
        """The data, the dynamics, and the rollouts."""

        penalty: float = Field(
            1.0, ge=0, allow_inf_nan=False, description="times the largest deviation of the members, off rewards"
        )
        dynamics_every: Interval | None = Field(
            None, description="interval at which the dynamics learn again, on the clock of the run; default: once"
        )
        rollouts_every: Interval = Field(
            1_000, description="interval at which rollouts are imagined, on the clock of the run"
        )
        rollout_length: int | list[int] = Field(
            5, description="steps of a rollout; or [first, last, begin, end]: from first to last between two times"
        )

        @model_validator(mode="after")
        def _has_no_returns(self) -> Self:
            if self.return_to_go:
                raise ValueError(
                    "return_to_go = true: an imagined rollout does not go to the end of an episode; leave it out"
                )
            return self

        @model_validator(mode="after")
        def _comes_round(self) -> Self:
            for key in ("dynamics_every", "rollouts_every"):
                interval = getattr(self, key)
                if interval is None:
                    continue
                every = Every(interval)
                if every.clock == "frames":
                    raise ValueError(f"{key} = {interval}: no frames are collected; give a number of updates")
                if every.clock != "iterations" and every.interval % self.updates_per_iteration:
                    raise ValueError(
                        f"{key} = {interval} is looked at once in updates_per_iteration = "
                        f"{self.updates_per_iteration} updates; give a multiple of it"
                    )
            return self

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__(config, context)
        self._imagination = Imagination(config, context)
        self.hooks = [self._imagination.figures]

    def minibatches(self, batch: Any) -> Iterator[Minibatch]:
        """Yield as many minibatches as the config says, after training and imagining where it is due."""
        self._imagination.refresh(self._data.columns)
        yield from super().minibatches(batch)

    def state_dict(self) -> dict[str, Any]:
        """Return what a dataset has, and the state of the imagination."""
        return {**super().state_dict(), STATE: self._imagination.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take both back."""
        super().load_state_dict(state)
        self._imagination.load_state_dict(state[STATE])

    def _draw(self, size: int) -> Minibatch:
        return self._imagination.draw(size, super()._draw)
