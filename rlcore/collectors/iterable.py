"""Any iterable of TensorDicts as a collector."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from rlcore.collectors.episodes import EpisodeCounter
from rlcore.errors import ConfigError, EndOfData, HookError
from rlcore.types import MASK, Collector, Episode, Stateful
from rlcore.types.foreign import (
    FillsBuffer,
    FillsBufferInBackground,
    SeedableCollector,
    ShutsDown,
    TensorDictLike,
)
from rlcore.types.optional import offers
from rlcore.types.part import Part, with_defaults

if TYPE_CHECKING:
    from tensordict import TensorDict

_POLL_SECONDS: Final = 0.01


class IterableCollector(Collector):
    """Takes batches from an iterable, in whatever way it makes them.

    Episodes are counted in batches `[env, time]` that hold `("next", "reward")` and `("next", "done")`, and in batches
    `[time]` that a collector of trajectories made (they hold `("collector", "traj_ids")`).

    Args:
        source: an iterable of TensorDicts. Where it has them, its `set_seed`, `state_dict`, `load_state_dict`,
            `shutdown` (or `close`) and `init_random_frames` are used. One that has a state and cannot be iterated is
            saved and loaded, and refused when training begins.
        background: whether `source.start()` collects in the background, into a replay buffer that
            `source.getattr_rb("write_count")` counts; then there are no batches.

    Attributes:
        source: what was handed over.
    """

    def __init__(self, source: Any, background: bool = False) -> None:
        if source is not None and not (isinstance(source, Iterable) or offers(source, Stateful)):
            raise ConfigError(
                f"collector: a {type(source).__name__} cannot be iterated; pass an iterable of TensorDicts"
            )
        if background and not offers(source, FillsBufferInBackground):
            raise ConfigError(
                "async_collection = True needs a collector that has start() and getattr_rb('write_count'), and writes "
                f"into a replay buffer of its own; {type(source).__name__} has not"
            )
        self.source: Any = source
        self._background: bool = background
        self._iterator: Iterator[Any] | None = None
        self._counter: EpisodeCounter | None = None
        self._finished: list[Episode] = []

    def collect(self) -> TensorDict | None:
        """Return the next batch; None where batches go into a replay buffer in the background.

        Raises:
            ConfigError: the source cannot be iterated.
            EndOfData: there is none.
            HookError: what came is no TensorDict.
        """
        if self._background:
            self._wait_for_more()
            return None
        if self._iterator is None:
            if self.source is not None and not isinstance(self.source, Iterable):
                raise ConfigError(
                    f"collector: a {type(self.source).__name__} cannot be iterated, so nothing is trained"
                )
            self._iterator = iter(self.source if self.source is not None else ())
        try:
            batch = next(self._iterator)
        except StopIteration:
            raise EndOfData from None
        if batch is None and offers(self.source, FillsBuffer):
            return None
        if not offers(batch, TensorDictLike):
            raise HookError(f"the collector gave a {type(batch).__name__}; expected a TensorDict `[env, time]`")
        self._finished = self._count_episodes(batch)
        return batch

    def steps_written(self) -> int:
        """Return how many steps the collector wrote into its replay buffer so far."""
        return int(self.source.getattr_rb("write_count"))

    def episodes(self) -> list[Episode]:
        """Return the episodes that ended in the last batch."""
        return self._finished

    def set_seed(self, seed: int) -> int:
        """Seed the collector, if it can be, and return the seed for what comes after it."""
        if not offers(self.source, SeedableCollector):
            return seed
        following = self.source.set_seed(seed, static_seed=False)
        return seed if following is None else int(following)

    def close(self) -> None:
        """Shut the source down, if it can be."""
        if offers(self.source, ShutsDown):
            self.source.shutdown()
        else:
            with_defaults(self.source, Part).close()

    def inexact(self) -> str | None:
        """Return why a resume would not go on where this collector stood, or None."""
        if self.source is None or offers(self.source, Stateful):
            return None
        return f"the collector ({type(self.source).__name__}) has no state that could be saved; a resume starts it over"

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the source, and the running episodes."""
        state: dict[str, Any] = {}
        if offers(self.source, Stateful):
            state["source"] = self.source.state_dict()
        if self._counter is not None:
            state["returns"], state["lengths"] = self._counter.returns, self._counter.lengths
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set them; an iterable without state starts over."""
        self._iterator = self._counter = None
        if "source" in state and offers(self.source, Stateful):
            self.source.load_state_dict(state["source"])
            if "returns" in state:
                self._counter = EpisodeCounter(len(state["returns"]))
                self._counter.go_on_from(state["returns"], state["lengths"])

    def _wait_for_more(self) -> None:
        """Start the source, and return when it has written anything."""
        if self._iterator is None:
            self._iterator = iter(())
            self.source.start()
            while self.steps_written() == 0:
                time.sleep(_POLL_SECONDS)

    def _count_episodes(self, batch: TensorDict) -> list[Episode]:
        reward, done = batch.get(("next", "reward"), None), batch.get(("next", "done"), None)
        in_time = batch.ndim == 2 or (batch.ndim == 1 and ("collector", "traj_ids") in batch.keys(True))
        if reward is None or done is None or not in_time or reward.numel() != batch.numel():
            return []
        mask = batch.get(MASK, None)
        shape = (-1, batch.batch_size[-1])
        if self._counter is None or len(self._counter.returns) != reward.reshape(shape).shape[0]:
            self._counter = EpisodeCounter(reward.reshape(shape).shape[0])
        rewards, dones = (entry.detach().cpu().reshape(shape).numpy().T for entry in (reward, done))
        valid = dones | True if mask is None else mask.cpu().reshape(shape).numpy().T
        return [
            Episode(return_, length, index, {})
            for _, index, return_, length in self._counter.take(rewards, dones & valid, valid)
        ]
