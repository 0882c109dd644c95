"""The actor in which a learner of a group runs, one process of Ray for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore_plugin_learners.serving import Server

from rlcore_plugin_ray.actor import Arrival, arrival
from rlcore_plugin_ray.meeting import Meeting

if TYPE_CHECKING:
    from rlcore_plugin_learners.config import AlgorithmConfig
    from rlcore_plugin_learners.crew import Order, Reply
    from rlcore_plugin_learners.multi import MultiRLModuleSpec


class LearnerActor:
    """A learner; what it does runs in the main thread of its process."""

    def arrive(self, meeting: Meeting) -> Arrival:
        """Say where this is."""
        return arrival(meeting)

    def build(self, rank: int, meeting: Meeting, config: AlgorithmConfig, spec: MultiRLModuleSpec) -> Reply:
        """Build the learner, as one of its group.

        Args:
            rank: number of the learner.
            meeting: where the group meets.
            config: of the learners.
            spec: of their modules.
        """
        group = meeting.join(rank)
        move = group.beat if meeting.shared else meeting.beats(rank)
        self._server = Server(config, spec, group, config.threads_per_learner, move)
        return self._server.build()

    def answer(self, order: Order) -> Reply:
        """Do what an order says."""
        return self._server.answer(order)
