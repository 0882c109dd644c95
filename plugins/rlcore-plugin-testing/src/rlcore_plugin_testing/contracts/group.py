"""What a group of ranks must keep, tried by real processes."""

from __future__ import annotations

import os
import pickle
import random
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Final

import pytest
from torch import Tensor

from rlcore.errors import RankLost, RlcoreError
from rlcore.types import Group
from rlcore_plugin_testing.contracts.group_calls import (
    LARGEST,
    Sums,
    belongings,
    bits_of,
    call,
    children,
    described,
    entered,
    everything,
    listening,
    loss_seen,
    named_memory,
    numbers_of,
    refusal,
)
from rlcore_plugin_testing.processes import Processes

# seconds: none of the tests waits for so long unless something is wrong
_LONG: Final = 30.0
# by suite and number of ranks, since each process costs more than the calls
_FOUND: Final[dict[tuple[type, int], list[dict[str, Any]]]] = {}


class GroupContract:
    """Base of the suites of groups.

    Attributes:
        sizes: how many ranks to try; with the last, that are more than the cores of many machines.
        in_order: whether sums are added in the order of the ranks, whatever their number.
        address: at which a rank may listen, in hexadecimal as the system shows it; None where it must not.
    """

    sizes: ClassVar[Sequence[int]] = (1, 2, 3, 5)
    in_order: ClassVar[bool] = True
    address: ClassVar[str | None] = None

    def place(self, size: int, deadline: float) -> AbstractContextManager[Callable[[int], Group]]:
        """Make the place where ranks meet, and yield what makes the group in the process of a rank.

        Args:
            size: how many ranks will come.
            deadline: seconds that they wait for one that does not move.
        """
        raise NotImplementedError("a suite says how its ranks meet: override `place`")

    def run(
        self, size: int, act: Callable[[Group], Any], deadline: float = _LONG, stopped: Sequence[int] = ()
    ) -> list[Any]:
        """Let each rank do something with its group, in a process of its own; return what each returned.

        Args:
            size: how many ranks there are.
            act: what they do.
            deadline: seconds that they wait for one that does not move.
            stopped: ranks that are not waited for.
        """
        with self.place(size, deadline) as enter:
            return Processes(size, lambda rank: act(entered(enter, rank))).results(stopped)

    def together(self) -> Sequence[int]:
        """Return the numbers of ranks with others among the sizes."""
        sizes = [size for size in self.sizes if size > 1]
        if not sizes:
            pytest.skip("one process loses nobody")
        return sizes

    def found(self, size: int) -> list[dict[str, Any]]:
        """Return what each rank finds in calls that are no trouble; the tests look at it in turn."""
        if (type(self), size) not in _FOUND:
            _FOUND[type(self), size] = self.run(size, everything)
        return _FOUND[type(self), size]

    def test_says_who_it_is(self) -> None:
        """Ranks are numbered from 0, and belong to a generation."""
        for size in self.sizes:
            for rank, found in enumerate(self.found(size)):
                assert found["is"] == [rank, size, 1], f"rank {rank} of {size} says that it is {found['is']}"

    @pytest.mark.parametrize(("longest", "times"), [(70_001, 3)])
    def test_sums_have_the_same_bits_everywhere_and_every_time(self, longest: int, times: int) -> None:
        """Ranks that are late, early, many or few must not change the order in which numbers are added."""
        lengths = [1, 7, 1000, 4097, longest]
        for size in self.sizes:
            parts = [[numbers_of(rank, length) for rank in range(size)] for length in lengths]

            def act(group: Group, parts: list[list[Tensor]] = parts) -> list[list[str]]:
                sums = Sums(group, parts)
                return [sums.digests() for _ in range(times)]

            first, *others = self.run(size, act)
            assert others == [first] * (size - 1), f"with {size} ranks, a sum has other bits on another rank"
            assert first == first[:1] * times, f"with {size} ranks, a sum has other bits in a repeat"
            if self.in_order or size < 3:
                expected = [bits_of(sum(several[1:], several[0])) for several in parts]
                assert first[0] == expected, f"with {size} ranks, a sum is not that in the order of the ranks"

    def test_sums_are_sums(self) -> None:
        """Whatever the order, every rank counts once."""
        for size in self.sizes:
            for found in self.found(size):
                assert found["sum"] == [2.0**size - 1, size], f"with {size} ranks, the sum is {found['sum']}"

    def test_what_is_not_finite_arrives_everywhere(self) -> None:
        """The flag of a step that all skip is in the sum."""
        for size in self.sizes:
            for found in self.found(size):
                nan, infinity, finite = found["not finite"]
                assert nan != nan, "NaN of one rank is lost in the sum"
                assert infinity == float("inf"), "infinity of one rank is lost in the sum"
                assert finite == size, "NaN of one rank is in more of the sum than its own place"

    def test_numbers_are_shared_in_the_order_of_the_ranks(self) -> None:
        """All 64 bits of each; and none is a number of numbers."""
        for size in self.sizes:
            ranks = range(size)
            expected = [
                [[rank, -rank] for rank in ranks],
                [[LARGEST, -LARGEST - 1] for _ in ranks],
                [[] for _ in ranks],
                [[rank] * 700 for rank in ranks],
            ]
            for found in self.found(size):
                assert found["shared"] == expected, f"with {size} ranks, shared numbers are {found['shared']}"

    def test_trees_and_tensors_are_gathered_with_their_types(self) -> None:
        """Each rank may hand over other keys and sizes, or nothing."""
        for size in self.sizes:
            first, *others = [found["gathered"] for found in self.found(size)]
            expected = [described(*belongings(rank)) for rank in range(size)]
            assert first == expected, f"with {size} ranks, rank 0 gathered {first}"
            assert others == [[]] * (size - 1), "another rank than 0 has what was gathered"

    def test_nobody_leaves_a_barrier_before_all_have_come(self) -> None:
        """The last to come is the first who may go."""
        for size in self.sizes:

            def act(group: Group) -> list[float]:
                group.barrier()
                time.sleep(0.02 * group.rank)
                came = time.monotonic()
                group.barrier()
                return [came, time.monotonic()]

            times = self.run(size, act)
            assert max(came for came, _ in times) <= min(left for _, left in times), "one left before another came"

    @pytest.mark.parametrize("kind", ["sum_", "share", "gather", "barrier"])
    def test_a_rank_that_ends_is_named(self, kind: str) -> None:
        """The others hear of it long before the deadline, and again in every later call."""
        size = self.together()[-1]
        lost = size - 2

        def act(group: Group) -> Any:
            call(group, kind)
            if group.rank == lost:
                os.kill(os.getpid(), signal.SIGKILL)
            return [loss_seen(group, kind), loss_seen(group, "share")]

        self._check_named(self.run(size, act), lost)

    @pytest.mark.parametrize("seed", [0, 1])
    def test_a_rank_that_is_killed_at_any_moment_is_named(self, seed: int) -> None:
        """In a call, between two, or at the beginning of the first."""
        chance = random.Random(seed)
        size = chance.choice(self.together())
        lost = chance.randrange(size)
        kinds = ["sum_", "share", "gather", "barrier"]
        # a byte of each rank that has met the others: a rank that never comes is another fault
        met, has_met = os.pipe()

        def act(group: Group) -> Any:
            os.write(has_met, b".")
            for number in range(1_000_000):
                seen = loss_seen(group, kinds[number % 4])
                if seen:
                    return [seen]
            return []

        with self.place(size, _LONG) as enter:
            processes = Processes(size, lambda rank: act(entered(enter, rank)))
            os.close(has_met)
            for _ in range(size):
                os.read(met, 1)
            time.sleep(0.05 * chance.random())
            os.kill(processes.pids[lost], signal.SIGKILL)
            self._check_named(processes.results(), lost)
        os.close(met)

    def test_a_rank_that_stands_still_is_named_at_the_deadline(self) -> None:
        """A stopped process looks alive to the system."""
        size = self.together()[0]

        def act(group: Group) -> Any:
            group.barrier()
            if group.rank == 0:
                os.kill(os.getpid(), signal.SIGSTOP)
            return [loss_seen(group, "share")]

        self._check_named(self.run(size, act, deadline=0.5, stopped=[0]), 0)

    def test_a_rank_that_goes_on_after_it_was_given_up_is_refused(self) -> None:
        """It belongs to a generation that is over; so does whoever comes late."""
        size = self.together()[0]
        with self.place(size, 0.5) as enter:

            def act(rank: int) -> Any:
                group = entered(enter, rank)
                group.barrier()
                if rank == 0:
                    os.kill(os.getpid(), signal.SIGSTOP)
                return [loss_seen(group, "share")]

            processes = Processes(size, act)
            # until it stands still, or has ended, which `results` tells
            os.waitid(os.P_PID, processes.pids[0], os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            time.sleep(1.5)
            os.kill(processes.pids[0], signal.SIGCONT)
            self._check_named(processes.results(), 0, stays=True)
            (late,) = Processes(1, lambda rank: refusal(enter, rank)).results()
        assert late is not None, "a rank can join a generation that is over"

    def test_a_rank_that_moves_is_waited_for(self) -> None:
        """What takes longer than the deadline is no fault as long as the rank says that it moves."""
        size = self.together()[0]

        def act(group: Group) -> Any:
            group.barrier()
            if group.rank == 0:
                for _ in range(12):
                    time.sleep(0.1)
                    group.beat()
            return [loss_seen(group, "share")]

        assert self.run(size, act, deadline=0.6) == [[None]] * size, "a rank that moves was given up"

    def test_different_calls_are_an_error(self) -> None:
        """A hook that calls the group on one rank only must not make numbers of something else."""
        size = self.together()[0]

        def act(group: Group) -> Any:
            group.barrier()
            try:
                call(group, "sum_" if group.rank == 0 else "share")
            except RlcoreError as error:
                return not isinstance(error, RankLost)
            return None

        assert self.run(size, act) == [True] * size, "ranks that make different calls are not told"

    def test_nothing_is_pickled(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """What came over a connection must never run."""

        def refuse(*arguments: Any, **keywords: Any) -> Any:
            raise AssertionError("something is pickled")

        def act(group: Group) -> None:
            for name in ("dump", "dumps", "load", "loads", "Pickler", "Unpickler", "_Pickler", "_Unpickler"):
                monkeypatch.setattr(pickle, name, refuse)
            for kind in ("sum_", "share", "gather", "barrier"):
                call(group, kind)

        self.run(self.sizes[0], act)
        self.run(self.sizes[-1], act)

    def test_listens_nowhere_else_and_leaves_nothing(self) -> None:
        """No port but at the address that was given, no file, no process."""

        def act(group: Group) -> list[Any]:
            for kind in ("sum_", "share", "gather", "barrier"):
                call(group, kind)
            found = [sorted(listening()), sorted(named_memory()), children()]
            group.barrier()
            return found

        before = sorted(named_memory())
        for addresses, memory, started in self.run(self.sizes[-1], act):
            assert set(addresses) <= {self.address}, f"a rank listens at {addresses}"
            assert memory == before, f"a rank uses memory with a name: {memory}"
            assert not started, f"a rank started {started}"

    def _check_named(self, answers: list[Any], lost: int, stays: bool = False) -> None:
        for rank, answer in enumerate(answers):
            if rank == lost and not stays:
                assert answer is None, f"rank {rank} was to end"
                continue
            for seen in answer:
                assert seen is not None, f"rank {rank} goes on without rank {lost}"
                number, seconds = seen
                assert number == lost, f"rank {rank} takes rank {number} for lost, and it is rank {lost}"
                assert seconds < _LONG / 2, f"rank {rank} heard of it after {seconds:.1f} s, by the deadline only"
