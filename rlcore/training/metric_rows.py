"""What the loop itself has to say in the metrics - episodes, speed, clocks - and when a row of them is written."""

from __future__ import annotations

from collections.abc import Sequence

from rlcore.loggers.metrics import Last
from rlcore.training.parts import TrainerParts
from rlcore.types import Collector, Episode, Group
from rlcore.types.part import with_defaults


class MetricRows:
    """Adds what the loop knows to the metrics, and writes a row when it is due.

    Args:
        parts: of the trainer.

    Attributes:
        seconds_trained: spent collecting and optimising in this process.
    """

    def __init__(self, parts: TrainerParts) -> None:
        self.seconds_trained = 0.0
        self._parts = parts
        self._seconds_before = 0.0
        self._now_before = 0
        self._waited_before = 0.0

    def begin(self) -> None:
        """Measure the speed from here on."""
        self._seconds_before, self._now_before = self.seconds_trained, self._parts.progress.now

    def add_collected(self, episodes: Sequence[Episode]) -> None:
        """Take in the figures of the collector, and the episodes that ended in its batch."""
        metrics, collector = self._parts.metrics, self._parts.collector
        metrics.add(with_defaults(collector, Collector).metrics(), "collector/")
        metrics.extend("episode/return", [episode.return_ for episode in episodes])
        metrics.extend("episode/length", [episode.length for episode in episodes])
        agents = self._parts.policies
        for policy in dict.fromkeys(agents):
            returns = [episode.return_ for episode in episodes if agents[episode.env_index % len(agents)] == policy]
            metrics.extend(f"episode/return/{policy}", returns)

    def write(self, force: bool) -> bool:
        """Write a row where one is due, or in any case with `force`; return whether one was written."""
        metrics, progress = self._parts.metrics, self._parts.progress
        if not (metrics.every.due(progress) or force):
            return False
        first = not self._parts.group.rank  # what is the same on all ranks is said once
        if first and progress.now != self._now_before:
            self._add_speed()
        if first and progress.now != metrics.written_at:
            metrics.add(self._parts.learner.scheduled(), "train/")
            clocks = {"updates": progress.updates, "episodes": progress.episodes}
            metrics.add({name: Last(value) for name, value in clocks.items()}, "progress/")
        self._add_waiting()
        metrics.write(progress)
        return True

    def _add_waiting(self) -> None:
        """Say how long each rank waited for others since the last row, and which waited least: the slowest."""
        group = self._parts.group
        waited = with_defaults(group, Group).waited
        if waited is None:
            return
        microseconds_of_row, self._waited_before = waited - self._waited_before, waited
        every = [microseconds / 1e6 for (microseconds,) in group.share((int(1e6 * microseconds_of_row),))]
        if not group.rank:
            of_ranks = {f"waited/rank-{rank}": seconds for rank, seconds in enumerate(every)}
            self._parts.metrics.add({**of_ranks, "slowest_rank": Last(every.index(min(every)))}, "time/")

    def _add_speed(self) -> None:
        progress = self._parts.progress
        done = progress.now - self._now_before
        seconds = self.seconds_trained - self._seconds_before
        self._parts.metrics.add({f"{progress.clock}_per_second": done / seconds if seconds else 0.0}, "time/")
        self.begin()
        times = {hook.name: hook.seconds for hook in self._parts.hooks.hooks if not hook.internal}
        self._parts.metrics.add(times, "time/hooks/")
