"""Learners that are elsewhere, as a group sees them: where they run is a matter of each kind of crew."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, Final, NamedTuple

import cloudpickle

# seconds that a learner which is ended has for it
PATIENCE: Final = 5.0


class Order(NamedTuple):
    """What a learner is to do.

    Attributes:
        function: called with the learner and the arguments.
        arguments: of it.
        changes: whether the learner is another one afterwards, so that its state has to be kept again.
        together: whether learners wait for each other in it, so that none can go on where one failed.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    changes: bool = True
    together: bool = False


def _nothing(learner: Any) -> None:
    pass


NOTHING: Final = Order(_nothing, changes=False)


class Reply(NamedTuple):
    """What a learner says to an order.

    Attributes:
        result: what the function returned.
        error: what it raised, or None.
        state: after a change, of the first learner; of the others what they have logged.
        rank: of who says it.
    """

    result: Any = None
    error: BaseException | None = None
    state: dict[str, Any] | None = None
    rank: int = 0


class Portable:
    """A function that goes through a pipe whatever it is, such as a lambda.

    Args:
        function: of a learner.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._content = cloudpickle.dumps(function)

    def __call__(self, *arguments: Any) -> Any:
        """Call the function."""
        return cloudpickle.loads(self._content)(*arguments)


class LostLearnerError(Exception):
    """A learner is gone, or does not move; says which, and how."""


class Crew(ABC):
    """The learners of a group that are elsewhere, of one generation after the other.

    Each answers all orders, in the order in which it gets them. The first answer of a generation says that it is built.

    Args:
        size: how many there are.
    """

    def __init__(self, size: int) -> None:
        self.size = size

    @abstractmethod
    def start(self, generation: int) -> None:
        """Start all of them; none of an earlier generation is left.

        Raises:
            LostLearnerError: one ended at once.
        """

    @abstractmethod
    def send(self, orders: Sequence[Order]) -> None:
        """Give an order to each.

        Raises:
            LostLearnerError: one is gone.
        """

    @abstractmethod
    def ready(self, ranks: Sequence[int], seconds: float) -> Collection[int]:
        """Return which of some learners have an answer to take, after so many seconds at most where none has."""

    @abstractmethod
    def receive(self, rank: int) -> Reply:
        """Take the answer of a learner that is ready.

        Raises:
            LostLearnerError: it is gone.
        """

    @abstractmethod
    def mark(self, rank: int) -> Hashable:
        """Return what changes as long as a learner moves."""

    @abstractmethod
    def living(self) -> int:
        """Return how many of them live."""

    @abstractmethod
    def end(self) -> None:
        """End all of them, and give back what they share; may be called again."""

    def close(self) -> None:
        """Let go of everything; may be called again."""
        self.end()
