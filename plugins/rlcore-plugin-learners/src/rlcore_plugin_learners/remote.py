"""Learners that are elsewhere: given orders, and healed from the state that was kept.

All get the same orders in the same order, and every one of them answers. When one dies or stands still, all are ended
and started again from the state after the last order that was answered; the orders since then are given again.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import methodcaller
from typing import Any, Final

from rlcore.errors import NumericalError, RankLost
from rlcore.process import Stillness
from rlcore_plugin_learners.columns import COMPONENT_METRICS_LOGGER
from rlcore_plugin_learners.crew import NOTHING, Crew, LostLearnerError, Order, Reply

log = logging.getLogger(__name__)

# seconds between two looks at whether learners move
_LOOK: Final = 0.2


@dataclass
class Pending:
    """An order that was given and not answered by all.

    Attributes:
        orders: one for each learner.
        kind: what the asker knows it by.
        replies: by rank.
    """

    orders: Sequence[Order]
    kind: str
    replies: dict[int, Reply] = field(default_factory=dict)


class RemoteLearners:
    """The learners of a group that are elsewhere.

    Args:
        crew: starts them and reaches them.
        deadline: seconds that a learner is waited for without a sign of life.
        restarts: how often in a row they may die without an order done in between.

    Attributes:
        size: how many there are.
        runs: whether they were not shut down.
        deaths: how often all were started again because one was lost.
        state: after the last order that all answered.
    """

    def __init__(self, crew: Crew, deadline: float = 60.0, restarts: int = 3) -> None:
        self.size = crew.size
        self.runs = True
        self.deaths = 0
        self.state: dict[str, Any] = {}
        self._crew = crew
        self._deadline = deadline
        self._restarts = restarts
        self._in_a_row = 0
        self._generation = 0
        self._logged: dict[int, Any] = {}  # by rank
        self._structure: list[Order] = []
        self._pending: deque[Pending] = deque()
        self._stillness: list[Stillness] = []
        try:
            self._start()
        except LostLearnerError as error:
            self._heal(error)
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        """Return how many of them live."""
        return self._crew.living()

    @property
    def waiting(self) -> int:
        """How many orders are not answered by all."""
        return len(self._pending)

    def give(self, orders: Sequence[Order], kind: str) -> None:
        """Give an order to each learner, and go on."""
        self._pending.append(Pending(orders, kind))
        try:
            self._crew.send(orders)
        except LostLearnerError:  # which is found again when answers are taken
            log.debug("a learner did not take an order")

    def give_structure(self, order: Order) -> None:
        """Remember an order that changes which modules there are: learners that are started again do it first."""
        self._structure.append(order)

    def take(self, block: bool) -> tuple[str, list[Reply]] | None:
        """Return the answers to the order that was given first; None where none is complete and nobody waits.

        Raises:
            RankLost: learners were lost too often in a row.
        """
        while self._pending:
            pending = self._pending[0]
            try:
                if len(pending.replies) < self.size and not self._receive(pending, block):
                    return None
                if len(pending.replies) == self.size:
                    return self._done(pending)
            except LostLearnerError as error:
                self._heal(error)
        return None

    def answers_to(self, kind: str) -> list[Reply]:
        """Return the answers that have come to an order which is not answered by all, in the order of the learners."""
        return [entry.replies[rank] for entry in self._pending if entry.kind == kind for rank in sorted(entry.replies)]

    def close(self) -> None:
        """End the learners and give back what they share; may be called again."""
        self.runs = False
        self._crew.close()
        self._pending.clear()

    def _done(self, pending: Pending) -> tuple[str, list[Reply]]:
        """Return the replies to an order that is over; learners that could not end it together begin again."""
        replies = [pending.replies[rank] for rank in range(self.size)]
        errors = [reply.error for reply in replies if reply.error is not None]
        if errors and all(isinstance(error, RankLost) for error in errors):
            raise LostLearnerError(str(errors[0]))
        self._pending.popleft()
        self._in_a_row = 0
        self._keep(replies)
        if errors and replies[0].state is None and pending.orders[0].together and self.size > 1:
            self._begin_again()
        return pending.kind, replies

    def _receive(self, pending: Pending, block: bool) -> bool:
        """Take what has come, and return whether something had, or may come.

        Raises:
            LostLearnerError: a learner is gone, or does not move.
        """
        missing = [rank for rank in range(self.size) if rank not in pending.replies]
        ready = self._crew.ready(missing, _LOOK if block else 0)
        for rank in ready:
            pending.replies[rank] = self._crew.receive(rank)
        if ready:
            self._give_up_waiting(pending)
            return True
        lost = next((reply.error for reply in pending.replies.values() if isinstance(reply.error, RankLost)), None)
        if lost is not None:
            raise LostLearnerError(str(lost))
        self._look(missing)
        return block

    def _give_up_waiting(self, pending: Pending) -> None:
        """Expect no more answers to an order in which one failed that others wait for."""
        own = [r.error for r in pending.replies.values() if not isinstance(r.error, None | RankLost | NumericalError)]
        if own and pending.orders[0].together:
            for rank in range(self.size):
                pending.replies.setdefault(rank, Reply(error=RankLost(f"learner {rank} waited for one that failed")))

    def _look(self, missing: Sequence[int]) -> None:
        """Find learners that stand still."""
        for rank in missing:
            if self._stillness[rank].look(self._crew.mark(rank)) > self._deadline:
                raise LostLearnerError(f"learner {rank} did not move for {self._deadline:g} s")

    def _heal(self, why: LostLearnerError) -> None:
        """Start all learners again, from the state that was kept, with the orders that were not answered.

        Raises:
            RankLost: too often in a row.
        """
        while True:
            self._in_a_row += 1
            self.deaths += 1
            if self._in_a_row > self._restarts:
                undone = len(self._pending)
                self.close()
                raise RankLost(
                    f"learners were lost {self._in_a_row} times in a row ({why}); {undone} orders are undone, and the "
                    "group is shut down. get_state and save_to_path have the state before them; build another group"
                )
            log.warning("a learner was lost (%s): all begin again, from the state that was kept", why)
            try:
                self._begin_again()
                return
            except LostLearnerError as error:
                why = error

    def _begin_again(self) -> None:
        self._crew.end()
        self._start()
        for entry in self._pending:
            entry.replies.clear()
            self._crew.send(entry.orders)

    def _start(self) -> None:
        """Start all, wait until they are built, and give them the state that was kept."""
        self._generation += 1
        self._crew.start(self._generation)
        self._stillness = [Stillness(2 * _LOOK) for _ in range(self.size)]
        kept, logged = self.state, dict(self._logged)
        self._expect()
        for order in self._structure:
            self._crew.send([order] * self.size)
            self._expect()
        if kept:
            states = [kept | {COMPONENT_METRICS_LOGGER: logged[rank]} for rank in range(self.size)]
            self._crew.send([Order(methodcaller("set_state", state)) for state in states])
            self._expect()

    def _expect(self) -> None:
        """Take one answer of each, and raise what one of them raises."""
        expected = Pending([NOTHING], "")
        while len(expected.replies) < self.size:
            self._receive(expected, block=True)
        errors = [reply.error for reply in expected.replies.values() if reply.error is not None]
        if errors:
            self.close()
            raise errors[0]
        self._keep(list(expected.replies.values()))

    def _keep(self, replies: Sequence[Reply]) -> None:
        """Keep the state of the first learner, and what each has logged."""
        for reply in replies:
            if reply.state is not None:
                self._logged[reply.rank] = reply.state[COMPONENT_METRICS_LOGGER]
                self.state = self.state if reply.rank else reply.state
