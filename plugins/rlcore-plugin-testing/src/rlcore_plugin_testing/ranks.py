"""Several ranks in one process, each in a thread, to test what must be the same on all."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rlcore.checkpoints.manifest import scan
from rlcore.process.first_calls import make_first_calls

if TYPE_CHECKING:
    from torch import Tensor

Result = TypeVar("Result")

_SECONDS: Final = 60.0


def in_ranks(count: int, function: Callable[[ThreadRank], Result]) -> list[Result]:
    """Call a function once for each rank of a group, all at once, and return what each returned.

    Args:
        count: of ranks.
        function: takes its rank, a `rlcore.types.Group`.

    Raises:
        BaseException: what the first of them raised; the others end with a `BrokenBarrierError`.
    """
    make_first_calls()
    meeting = _Meeting(count)

    def run(rank: int) -> Result:
        try:
            return function(ThreadRank(rank, count, meeting))
        except BaseException:
            meeting.barrier.abort()
            raise

    with ThreadPoolExecutor(count) as threads:
        calls = [threads.submit(run, rank) for rank in range(count)]
    errors = [error for error in (call.exception() for call in calls) if error is not None]
    for error in errors:
        if not isinstance(error, threading.BrokenBarrierError):
            raise error
    return [call.result() for call in calls]


def digests(run: Path) -> dict[str, str]:
    """Return the hash of each part in the latest checkpoint of a run of such ranks.

    The generators of the process are left out: the ranks are threads, and draw from them as it comes. So are the
    observers, which change nothing of the training.

    Args:
        run: the folder of the run.
    """
    manifest = scan(run / "checkpoints").entries[-1].manifest
    kept = {name: value for name, value in manifest["digests"].items() if name not in manifest["observers"]}
    return {name: value for name, value in kept.items() if not re.fullmatch(r"(rank-\d+/)?generators", name)}


class ThreadRank:
    """A rank of such a group.

    Attributes:
        rank: its number.
        size: how many there are.
        generation: of the ranks, always the first.
        sums: how often it summed.
        shares: how often it shared numbers.
    """

    generation = 1

    def __init__(self, rank: int, size: int, meeting: _Meeting) -> None:
        self.rank = rank
        self.size = size
        self.sums = 0
        self.shares = 0
        self._meeting = meeting

    def sum_(self, flat: Tensor) -> None:
        """Replace a flat tensor by its sum over the ranks, added in their order."""
        self.sums += 1
        flat.copy_(sum(self._meeting.gather(self.rank, flat.clone())))

    def share(self, numbers: Sequence[int]) -> Sequence[Sequence[int]]:
        """Return the numbers of every rank."""
        self.shares += 1
        return tuple(self._meeting.gather(self.rank, tuple(numbers)))

    def gather(self, tree: Any, tensors: Mapping[str, Tensor] | None = None) -> Sequence[tuple[Any, dict[str, Tensor]]]:
        """Return the tree and the tensors of every rank, on rank 0."""
        copies = {name: tensor.detach().cpu().clone() for name, tensor in (tensors or {}).items()}
        every = self._meeting.gather(self.rank, (json.dumps(tree), copies))
        return [] if self.rank else [(json.loads(text), own) for text, own in every]

    def barrier(self) -> None:
        """Wait until every rank calls this."""
        self._meeting.gather(self.rank, None)

    def beat(self) -> None:
        """Do nothing: ranks of one process move or end together."""


class _Meeting:
    """Where the ranks lay down what they have, and take what all have."""

    def __init__(self, count: int) -> None:
        self.barrier = threading.Barrier(count, timeout=_SECONDS)
        self._places: list[Any] = [None] * count

    def gather(self, rank: int, thing: Any) -> list[Any]:
        self._places[rank] = thing
        self.barrier.wait()
        everything = list(self._places)
        self.barrier.wait()  # nobody lays down the next before all have taken these
        return everything
