"""What learners returned to whoever asked all of them, each with the number of its learner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Result = TypeVar("Result")


@dataclass(frozen=True)
class CallResult(Generic[Result]):
    """What one learner returned.

    Attributes:
        actor_id: number of the learner; None for the one in this process.
        result: what it returned.
    """

    actor_id: int | None
    result: Result

    @property
    def ok(self) -> bool:
        """Whether it is a result: always, as an error of a learner is raised where it is asked."""
        return True

    def get(self) -> Result:
        """Return what the learner returned."""
        return self.result


class RemoteCallResults(Generic[Result]):
    """What learners returned, in the order of their numbers.

    Args:
        results: of each learner.
    """

    def __init__(self, results: Sequence[CallResult[Result]] = ()) -> None:
        self.result_or_errors = list(results)

    def __iter__(self) -> Iterator[CallResult[Result]]:
        return iter(list(self.result_or_errors))

    def __len__(self) -> int:
        return len(self.result_or_errors)

    def ignore_errors(self) -> Iterator[CallResult[Result]]:
        """Return an iterator over the results."""
        return iter(self)

    def ignore_ray_errors(self) -> Iterator[CallResult[Result]]:
        """Return an iterator over the results."""
        return iter(self)
