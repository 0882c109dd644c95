"""Ranks that torchrun starts find each other through its store, whatever ranks before them have left there."""

import os
import re
import signal
import socket
import sys
import threading
import time
from datetime import timedelta

import pytest
import torch.distributed
from rlcore_plugin_ddp.gloo import GlooGroup
from rlcore_plugin_ddp.meeting import Meeting
from rlcore_plugin_ddp.memory import Memory
from rlcore_plugin_ddp.moving import Moves
from rlcore_plugin_ddp.shared import SharedGroup
from rlcore_plugin_ddp.torchrun import Torchrun
from rlcore_plugin_testing.contracts.group_calls import listening
from rlcore_plugin_testing.light_import import heavy_imports
from rlcore_plugin_testing.processes import Processes

from rlcore.errors import ConfigError, Interruption, RankLost

from .kept_store import kept_store

LAUNCH = {
    "TORCHELASTIC_RUN_ID": "7",
    "RANK": "1",
    "WORLD_SIZE": "2",
    "LOCAL_RANK": "0",
    "LOCAL_WORLD_SIZE": "1",
    "TORCHELASTIC_MAX_RESTARTS": "3",
}


@pytest.fixture
def store():
    """Return host and port of a store, which somebody else keeps."""
    with kept_store() as port:
        yield "127.0.0.1", port, True


def test_asking_where_a_process_stands_needs_no_torch():
    assert not {"torch", "tensordict"} & {
        line.partition(" ")[0] for line in heavy_imports("rlcore_plugin_ddp.torchrun")
    }


def test_torchrun_says_where_a_process_stands(monkeypatch):
    for key, value in LAUNCH.items():
        monkeypatch.setenv(key, value)
    assert Torchrun.here() == (1, 2, 0, 1, 3, "torchrun 7")
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    nameless = Torchrun.here().launch
    assert nameless.startswith(f"torchrun process {os.getppid()} ")
    (other,) = Processes(1, lambda number: Torchrun.here().launch).results()
    assert other != nameless, "started by another process"


def test_a_process_that_torchrun_did_not_start_is_told_how_to(monkeypatch):
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    with pytest.raises(ConfigError, match="torchrun --nproc-per-node N -m rlcore train"):
        Torchrun.here()
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "7")
    monkeypatch.setenv("RANK", "first")
    with pytest.raises(ConfigError, match="RANK, WORLD_SIZE"):
        Torchrun.here()


def test_what_an_earlier_start_left_in_the_store_misleads_nobody(store):
    left = torch.distributed.TCPStore(store[0], store[1], None, False, timedelta(seconds=5), False)
    left.set("rlcore/came/1", "a rank that is gone")

    def rank(number):
        if number:
            time.sleep(0.3)  # until rank 0 has answered the one that is gone
        return Meeting(store, number, 3, 5.0).meet()

    assert Processes(3, rank).results() == [1, 1, 1]
    assert Processes(3, rank).results() == [2, 2, 2]


def test_who_does_not_come_is_named(store):
    with pytest.raises(RankLost, match=r"ranks 1, 2 of 3 did not come within 0\.3 s") as caught:
        Meeting(store, 0, 3, 0.1, coming=0.3).meet()
    assert caught.value.rank == 1
    with pytest.raises(RankLost, match="finds no rank 0"):
        Meeting(store, 2, 3, 0.1, coming=0.3).meet()


def test_a_store_that_nobody_keeps_is_kept_by_rank_0_at_its_address_alone():
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = ("127.0.0.1", server.getsockname()[1], False)

    def rank(number):
        meeting = Meeting(endpoint, number, 2, 5.0)
        generation, found = meeting.meet(), sorted(listening())
        if number:
            meeting.store.set("done", "")
        else:
            meeting.store.wait(["done"])  # it goes last
        return [generation, found]

    assert Processes(2, rank).results() == [[1, ["0100007F"]], [1, []]]


def test_ranks_of_one_host_share_memory_that_has_no_name(store):
    def rank(number):
        meeting = Meeting(store, number, 2, 5.0)
        memory = meeting.memory(meeting.meet())
        memory.begin("barrier", 0)
        memory.meet()
        return [memory.generation, os.readlink(f"/proc/self/fd/{memory.fd}").partition(" ")[0]]

    assert Processes(2, rank).results() == [[1, "/memfd:rlcore-ranks"]] * 2


def test_ranks_that_cannot_see_the_memory_do_without(store, monkeypatch):
    monkeypatch.setattr("rlcore_plugin_ddp.meeting._opened", lambda *there: None)

    def rank(number):
        meeting = Meeting(store, number, 2, 5.0)
        return meeting.memory(meeting.meet()) is None

    assert Processes(2, rank).results() == [True, True]


def test_the_address_is_that_of_the_way_to_the_store_or_of_the_interface_that_is_named(store, monkeypatch):
    meeting = Meeting(store, 0, 1, 5.0)
    assert meeting.address() == "127.0.0.1"
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    assert meeting.address() == "127.0.0.1"
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "nowhere0")
    with pytest.raises(ConfigError, match="GLOO_SOCKET_IFNAME = 'nowhere0'"):
        meeting.address()


def moving(store, number, deadline, size=3):
    return moves_and_group(store, number, deadline, size)[1]


def moves_and_group(store, number, deadline, size=3):
    meeting = Meeting(store, number, size, deadline)
    generation = meeting.meet()
    moves = Moves(meeting.store, number, size, generation, deadline)
    return moves, GlooGroup(meeting.store, number, size, generation, deadline, moves=moves)


def test_a_rank_of_another_host_that_says_that_it_moves_is_waited_for(store):
    def rank(number):
        group = moving(store, number, deadline=2.0)
        for _ in range(36 if number == 1 else 0):  # far beyond the deadline
            time.sleep(0.1)
            group.beat()
        found = [list(numbers) for numbers in group.share([number])]
        group.barrier()
        return found

    assert Processes(3, rank).results() == [[[0], [1], [2]]] * 3


def test_a_rank_of_another_host_that_says_nothing_is_named(store):
    def rank(number):
        group = moving(store, number, deadline=3.0)
        group.barrier()
        if number == 1:
            time.sleep(50.0)
        try:
            group.share([number])
        except RankLost as lost:
            return [lost.rank, str(lost)]

    first, _, third = Processes(3, rank).results(stopped=[1])
    assert first[0] == third[0] == 1
    assert "rank 1 of 3 is lost: it has not moved" in first[1] + third[1]


def test_a_rank_of_another_host_that_stands_still_in_the_call_of_the_others_is_named(store):
    def rank(number):
        moves, group = moves_and_group(store, number, deadline=2.0)
        group.barrier()
        if number == 1:
            moves.begin("share with 8 bytes")
            time.sleep(0.5)  # until it is time to say something
            moves.beat()
            time.sleep(50.0)
        try:
            group.share([number])
        except RankLost as lost:
            return [lost.rank, str(lost)]

    first, _, third = Processes(3, rank).results(stopped=[1])
    assert first[0] == third[0] == 1
    for text in (first[1], third[1]):
        assert re.search(r"rank 1 of 3 is lost: it has not moved for \d s, and made 2 of 2 calls", text)


def test_a_call_that_does_not_end_although_all_wait_in_it_is_given_up(store):
    def rank(number):
        moves, _ = moves_and_group(store, number, deadline=0.5, size=2)
        moves.begin("share with 8 bytes")
        watch = moves.watch()
        try:
            while True:
                time.sleep(0.01)
                watch.look()
        except RankLost as lost:
            return str(lost)

    given_up = "all ranks are in share with 8 bytes, and it does not end; rank {0} gives it up"
    first, second = (text.partition(", as rank ")[0] for text in Processes(2, rank).results())
    assert {first, second} <= {given_up.format(0), given_up.format(1)}


def test_a_beat_from_another_thread_takes_no_call_back(store):
    def rank(number):
        sys.setswitchinterval(1e-6)
        meeting = Meeting(store, 0, 1, 5.0)
        moves = [Moves(meeting.store, rank, 2, 1, 0.2) for rank in range(2)]
        done = threading.Event()

        def beat():
            while not done.is_set():
                moves[0].beat()

        thread = threading.Thread(target=beat)
        thread.start()
        calls, until = 0, time.monotonic() + 2.0
        while time.monotonic() < until:
            moves[0].begin("barrier with 0 bytes")
            calls += 1
        done.set()
        thread.join()
        time.sleep(0.1)
        moves[0].beat()
        for _ in range(calls + 1):
            moves[1].begin("barrier with 0 bytes")
        watch = moves[1].watch()
        try:
            while True:
                time.sleep(0.01)
                watch.look()
        except RankLost as lost:
            return [calls, str(lost)]

    ((calls, text),) = Processes(1, rank).results()
    assert f"made {calls} of {calls + 1} calls" in text


class Stopped(Interruption):
    """Somebody stops a rank."""


def test_a_rank_that_is_stopped_before_it_has_told_a_loss_knows_of_it(store):
    def stop(*_):
        raise Stopped

    def rank(number):
        group = moving(store, number, deadline=30.0, size=2)
        group.barrier()
        assert group.gone() is None
        if number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, 0.8)  # while it waits for words of those that live
        try:
            group.share([number])
        except Stopped:
            return [group.gone().rank, str(group.gone())]

    first, _ = Processes(2, rank).results(stopped=[1])
    assert first[0] == 1
    assert "rank 1 of 2 is lost; rank 0 is in share with 8 bytes: " in first[1]


def test_a_rank_that_named_another_before_it_ended_is_not_taken_for_lost(monkeypatch):
    """It may do both between two looks of a rank that waits."""
    with Memory.create(3) as made:
        memory = Memory(made.fd, 3, 1, 1)

        def names_another_and_ends(rank):
            made.end(2)
            return False

        monkeypatch.setattr(memory, "_lives", names_another_and_ends)
        assert memory.gone().rank == 2


def test_a_rank_on_one_host_knows_of_a_loss_without_a_call():
    with Memory.create(2) as made:

        def rank(number):
            group = SharedGroup(Memory(made.fd, 2, 1, number))
            group.barrier()
            if number == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            while group.gone() is None:
                time.sleep(0.01)
            return [group.gone().rank, str(group.gone())]

        first, _ = Processes(2, rank).results(stopped=[1])
    assert first[0] == 1
    assert "rank 1 of 2 is lost" in first[1]
