"""Ranks that torchrun starts find each other through its store, whatever ranks before them have left there."""

import os
import socket
import time
from datetime import timedelta

import pytest
import torch.distributed
from rlcore_plugin_ddp.gloo import GlooGroup
from rlcore_plugin_ddp.meeting import Meeting
from rlcore_plugin_ddp.moving import Moves
from rlcore_plugin_ddp.torchrun import Torchrun
from rlcore_plugin_testing.contracts.group_calls import listening
from rlcore_plugin_testing.light_import import heavy_imports
from rlcore_plugin_testing.processes import Processes

from rlcore.errors import ConfigError, RankLost

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
        meeting.store.set(f"done/{number}", "")
        meeting.store.wait(["done/0", "done/1"])
        time.sleep(0.2 * (1 - number))  # it goes last
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


def moving(store, number, deadline):
    meeting = Meeting(store, number, 3, deadline)
    generation = meeting.meet()
    moves = Moves(meeting.store, number, 3, generation, deadline)
    return GlooGroup(meeting.store, number, 3, generation, deadline, moves=moves)


def test_a_rank_of_another_host_that_says_that_it_moves_is_waited_for(store):
    def rank(number):
        group = moving(store, number, deadline=1.0)
        for _ in range(18 if number == 1 else 0):  # far beyond the deadline
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
