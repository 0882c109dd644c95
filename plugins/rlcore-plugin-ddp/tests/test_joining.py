"""Whoever starts the ranks hands them the memory by an environment variable, and needs no torch for it."""

import os
import time

import pytest
from rlcore_plugin_ddp.joining import joined
from rlcore_plugin_ddp.memory import Memory
from rlcore_plugin_testing.light_import import check_light_import
from rlcore_plugin_testing.processes import Processes

from rlcore.errors import ConfigError, RankLost


def joined_with(environment):
    os.environ.update(environment)
    return joined()


def test_starting_ranks_needs_no_torch():
    check_light_import("rlcore_plugin_ddp.memory")


def test_ranks_find_their_group_in_the_environment():
    with Memory.create(2, generation=3) as memory:

        def rank(number):
            group = joined_with(memory.environment(number, deadline=30.0))
            assert not os.get_inheritable(memory.fd), "what a rank starts is no rank"
            assert joined() is None
            return [group.rank, group.size, group.generation, list(group.share([number]))]

        assert Processes(2, rank).results() == [[number, 2, 3, [[0], [1]]] for number in range(2)]


def test_without_the_variable_a_process_is_no_rank():
    assert joined() is None


def test_whoever_starts_the_ranks_can_end_their_waits():
    with Memory.create(2) as memory:

        def rank(number):
            group = joined_with(memory.environment(number))
            try:
                group.barrier()
            except RankLost as lost:
                return [lost.rank, str(lost)]

        processes = Processes(1, rank)
        while memory.mark(0) == (0, 0):
            time.sleep(0.01)
        memory.end(lost=1)
        text = "generation 1 of the ranks is over: rank 1 of 2 is lost; rank 0 is in barrier with 0 bytes"
        assert processes.results() == [[1, text]]


def test_a_rank_of_another_generation_is_refused():
    with Memory.create(2, generation=2) as memory, pytest.raises(RankLost, match="generation 1 of the ranks is over"):
        Memory(memory.fd, 2, 1, rank=0)


def test_a_rank_cannot_run_twice():
    with Memory.create(1) as memory:

        def rank(number):
            own = Memory(memory.fd, 1, 1, rank=0)
            return [*Processes(1, again).results(), own.rank]

        def again(number):
            try:
                Memory(memory.fd, 1, 1, rank=0)
            except ConfigError as error:
                return str(error)

        assert Processes(1, rank).results() == [["rank 0 runs in another process already", 0]]
