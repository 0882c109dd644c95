"""How a group asks its learners: the one in this process, or those elsewhere, whose answers come in order."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from rlcore.errors import ConfigError, RankLost
from rlcore_plugin_learners.columns import COMPONENT_RL_MODULE

if TYPE_CHECKING:
    from rlcore_plugin_learners.config import AlgorithmConfig
    from rlcore_plugin_learners.crew import Order, Reply
    from rlcore_plugin_learners.learner import Learner
    from rlcore_plugin_learners.remote import RemoteLearners

Results = list[dict[str, Any]]

WEIGHTS_AFTER: Final = "_rl_module_state_after_update"
_FORGOTTEN: Final = "forgotten "
_NUMBERS: Final = count()


class Asking:
    """Gives orders to learners and collects what they return."""

    config: AlgorithmConfig
    _learner: Learner | None
    _remote: RemoteLearners | None
    _ready: deque[Results]
    _dropped: int

    def _update_later(self, orders: list[Order], full: str, return_state: bool) -> Results:
        remote = self._there()
        self._collect(block=False)
        if remote.waiting >= self.config.max_requests_in_flight_per_learner:
            if full == "drop":
                self._dropped += 1
                return self._taken()
            self._collect(block=True)
        remote.give(orders, "later with state" if return_state else "later")
        return self._taken()

    def _taken(self) -> Results:
        results = [result for several in self._ready for result in several]
        self._ready.clear()
        return results

    def _collect(self, block: bool) -> None:
        """Keep the results of asynchronous updates that are ready; wait for one of them, if asked."""
        taken = self._there().take(block)
        while taken is not None:
            self._keep(*taken)
            taken = self._there().take(block=False)

    def _ask(self, orders: list[Order], kind: str, return_state: bool = False) -> list[Any]:
        """Give an order and return what each learner returned; results of updates before it are kept."""
        remote = self._there()
        remote.give(orders, kind)
        while True:
            taken = remote.take(block=True)
            assert taken is not None
            if taken[0] == kind:
                return self._results(taken[1], return_state)
            self._keep(*taken)

    def _results(self, replies: list[Reply], return_state: bool) -> list[Any]:
        errors = [reply.error for reply in replies if reply.error is not None]
        if errors:
            raise next((error for error in errors if not isinstance(error, RankLost)), errors[0])
        results = [reply.result for reply in replies]
        if return_state and self._remote is not None:
            results[0][WEIGHTS_AFTER] = self._remote.state[COMPONENT_RL_MODULE]
        return results

    def _each(self, function: Callable[[Learner], Any]) -> list[Any]:
        """Call a function with every learner; methods by name, as a learner may have its own."""
        if self._remote is None:
            return [self._here().apply(function)]
        return [result for _, result in self._ask_some(function, range(self.config.num_learners))]

    def _ask_some(
        self, function: Callable[[Learner], Any], ranks: Sequence[int], seconds: float | None = None
    ) -> list[tuple[int, Any]]:
        """Return numbers of learners elsewhere, and what a function returns for each, in the order of their numbers."""
        from rlcore_plugin_learners.crew import NOTHING, Order, Portable

        asked = Order(Portable(function))
        orders = [asked if rank in ranks else NOTHING for rank in range(self.config.num_learners)]
        if seconds is None:
            results = self._ask(orders, "ask")
            return [(rank, results[rank]) for rank in ranks]
        replies = [reply for reply in self._ask_within(orders, seconds) if reply.rank in ranks]
        return list(zip([reply.rank for reply in replies], self._results(replies, False), strict=True))

    def _ask_within(self, orders: list[Order], seconds: float) -> list[Reply]:
        """Give an order, and return the answers that have come by then."""
        remote, kind = self._there(), f"{_FORGOTTEN}{next(_NUMBERS)}"
        remote.give(orders, kind)
        end = time.monotonic() + seconds
        while (taken := remote.take(block=False)) is not None or time.monotonic() < end:
            if taken is None:
                time.sleep(0.002)
            elif taken[0] == kind:
                return taken[1]
            else:
                self._keep(*taken)
        return remote.answers_to(kind)

    def _keep(self, kind: str, replies: list[Reply]) -> None:
        """Keep the results of an asynchronous update, until they are asked for."""
        if not kind.startswith(_FORGOTTEN):
            self._ready.append(self._results(replies, kind == "later with state"))

    def _restructure(self, function: Callable[[Learner], Any]) -> Any:
        result = self._each(function)[0]
        if self._remote is not None:
            from rlcore_plugin_learners.crew import Order, Portable

            self._remote.give_structure(Order(Portable(function)))
        return result

    def _kept(self) -> dict[str, Any]:
        """Return the state after all updates that were given."""
        if self._remote is None:
            raise ConfigError("the group of learners was shut down; build another")
        while self._remote.waiting:
            self._collect(block=True)
        return self._remote.state

    def _here(self) -> Learner:
        if self._learner is None:
            raise ConfigError("the group of learners was shut down; build another")
        return self._learner

    def _there(self) -> RemoteLearners:
        if self._remote is None or not self._remote.runs:
            raise ConfigError("the group of learners was shut down; build another")
        return self._remote
