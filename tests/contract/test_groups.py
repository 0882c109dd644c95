"""One process keeps the contract of groups too, and groups that break it are refused."""

import pickle
import socket
from contextlib import contextmanager

import pytest
from rlcore_plugin_ddp.memory import Memory
from rlcore_plugin_ddp.shared import SharedGroup
from rlcore_plugin_testing.contracts import GroupContract

from rlcore.errors import RankLost
from rlcore.types import Alone


class TestAlone(GroupContract):
    sizes = (1,)

    @contextmanager
    def place(self, size, deadline):
        yield lambda rank: Alone()


class UnevenGroup(SharedGroup):
    """Has other last bits on the last rank."""

    def sum_(self, flat):
        super().sum_(flat)
        flat.mul_(1 + 2e-7 * self.rank)


class FlushingGroup(SharedGroup):
    def sum_(self, flat):
        super().sum_(flat)
        flat.nan_to_num_()


class DoublingGroup(SharedGroup):
    def sum_(self, flat):
        super().sum_(flat)
        flat.mul_(2)


class BackwardGroup(SharedGroup):
    def share(self, numbers):
        return super().share(numbers)[::-1]


class GenerousGroup(SharedGroup):
    """Gives what was gathered to every rank."""

    def gather(self, tree, tensors=None):
        return super().gather(tree, tensors) or [(tree, tensors)]


class OpenGroup(SharedGroup):
    def barrier(self):
        pass


class ConfusedGroup(SharedGroup):
    """Takes itself for the rank that is lost."""

    def sum_(self, flat):
        try:
            super().sum_(flat)
        except RankLost:
            raise RankLost("a rank is lost", self.rank) from None

    def barrier(self):
        pass


class PicklingGroup(SharedGroup):
    def share(self, numbers):
        return pickle.loads(pickle.dumps(super().share(numbers)))


class ListeningGroup(SharedGroup):
    def __init__(self, memory):
        super().__init__(memory)
        self.server = socket.create_server(("0.0.0.0", 0))


class DeafGroup(SharedGroup):
    def beat(self):
        pass


class LooseMemory(Memory):
    """Lets whoever wants go on."""

    def check(self):
        pass

    def _come(self):
        self._head[2] = self.generation
        self._head[0] = 0
        super()._come()


class LooseGroup(SharedGroup):
    memory = LooseMemory


class CarelessMemory(Memory):
    """Does not look at what the others call."""

    def begin(self, kind, nbytes):
        return super().begin("barrier", 0)


class CarelessGroup(SharedGroup):
    memory = CarelessMemory


BROKEN = [
    (UnevenGroup, "test_sums_have_the_same_bits_everywhere_and_every_time", "bits on another rank"),
    (DoublingGroup, "test_sums_are_sums", "the sum is"),
    (FlushingGroup, "test_what_is_not_finite_arrives_everywhere", "NaN of one rank is lost"),
    (BackwardGroup, "test_numbers_are_shared_in_the_order_of_the_ranks", "shared numbers are"),
    (GenerousGroup, "test_trees_and_tensors_are_gathered_with_their_types", "another rank than 0"),
    (OpenGroup, "test_nobody_leaves_a_barrier_before_all_have_come", "before another came"),
    (ConfusedGroup, "test_a_rank_that_ends_is_named", "for lost, and it is rank"),
    (LooseGroup, "test_a_rank_that_goes_on_after_it_was_given_up_is_refused", "generation that is over"),
    (DeafGroup, "test_a_rank_that_moves_is_waited_for", "was given up"),
    (CarelessGroup, "test_different_calls_are_an_error", "are not told"),
    (PicklingGroup, "test_nothing_is_pickled", "something is pickled"),
    (ListeningGroup, "test_listens_nowhere_else_and_leaves_nothing", "listens at"),
]


def suite(group):
    class Suite(GroupContract):
        sizes = (2,)

        @contextmanager
        def place(self, size, deadline):
            with Memory.create(size) as memory:
                memory_of = getattr(group, "memory", Memory)
                yield lambda rank: group(memory_of(memory.fd, size, 1, rank, deadline))

    return Suite()


@pytest.mark.parametrize(("group", "test", "expected"), BROKEN)
def test_a_broken_group_is_refused(group, test, expected, monkeypatch):
    further = {
        "test_sums_have_the_same_bits_everywhere_and_every_time": (1000, 2),
        "test_a_rank_that_ends_is_named": ("sum_",),
        "test_nothing_is_pickled": (monkeypatch,),
    }
    with pytest.raises(AssertionError) as caught:
        getattr(suite(group), test)(*further.get(test, ()))
    assert expected in str(caught.value)
