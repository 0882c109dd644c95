"""H: torchrun starts the ranks, on one host and on two, and starts all of them again when one dies or stands still."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from pathlib import Path

import pytest

from rlcore.run_folder.status import read_status

from .several import Trained, runs

TORCHRUN = "torch.distributed.run"
ONE_HOST = (TORCHRUN, "--standalone", "--nproc-per-node", "2")
LOOPBACK = "0100007F"
# an env with which one rank is killed while the run is built, of the first ranks that are started
DYING = """
import os, signal
import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv

class Dying(CartPoleEnv):
    def __init__(self, **kwargs):
        if os.environ["RANK"] == "1" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
            os.kill(os.getpid(), signal.SIGKILL)
        super().__init__(**kwargs)

gymnasium.register("Dying-v0", Dying, max_episode_steps=500)
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Return an uninterrupted run whose ranks rlcore started."""
    trained = Trained(tmp_path_factory.mktemp("undisturbed"))
    assert trained.end() == 0, trained.text()
    return trained


def agents(folder, **sections):
    """Start one rank on each of two nodes, which are both this host; return their commands."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"127.0.0.1:{server.getsockname()[1]}"
    meeting = ("--rdzv-backend", "c10d", "--rdzv-endpoint", place, "--rdzv-id", "two", "--local-addr", "127.0.0.1")
    under = (TORCHRUN, "--nnodes", "2", "--nproc-per-node", "1", "--max-restarts", "3", *meeting)
    return [Trained(folder, under=under, output=f"node-{node}.txt", **sections) for node in range(2)]


def listening(process):
    """Return the addresses, in hexadecimal, at which a process listens."""
    own = {os.readlink(fd) for fd in Path(f"/proc/{process}/fd").iterdir() if fd.is_symlink()}
    tables = [Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:] for table in ("tcp", "tcp6")]
    fields = [line.split() for table in tables for line in table]
    return {place[1].partition(":")[0] for place in fields if place[3] == "0A" and f"socket:[{place[9]}]" in own}


def test_a_rank_that_is_killed_is_started_again_with_the_others(undisturbed, tmp_path):
    trained = Trained(tmp_path, under=(*ONE_HOST, "--max-restarts", "2"))
    trained.wait_for(1024)
    first = trained.ranks()
    assert [listening(rank) for rank in first] == [set(), set()]  # on one host they share memory
    os.kill(first[1], signal.SIGKILL)
    assert trained.end() == 0, trained.text()
    assert "rank 1 of 2 is lost: its process has ended" in trained.text()
    assert "up to 512 frames ([checkpoint] every) are lost" in trained.text()
    assert trained.result() == undisturbed.result()
    assert not any(map(runs, first))


def test_ranks_of_a_run_that_is_counted_in_updates_go_on_from_the_latest_checkpoint(tmp_path):
    # so many that ranks still train when the test acts: one that is killed after its run is not lost to the others
    sections = {"run": {"total_frames": None, "total_updates": 512}, "checkpoint": {"every": 32}}
    sections |= {"metrics": {"every": 16}, "evaluator": {"every": 64}}
    undisturbed = Trained(tmp_path, name="undisturbed", **sections)
    assert undisturbed.end() == 0, undisturbed.text()
    trained = Trained(tmp_path, under=(*ONE_HOST, "--max-restarts", "2"), **sections)
    trained.wait_for(64)
    os.kill(trained.ranks()[0], signal.SIGKILL)
    assert trained.end() == 0, trained.text()
    assert "rank 0 of 2 is lost" in trained.text()
    assert "up to 32 updates ([checkpoint] every) are lost" in trained.text()
    assert trained.result() == undisturbed.result()
    assert trained.entries()[-1].manifest["progress"]["updates"] == 512


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_rank_of_another_node_is_lost(undisturbed, tmp_path, number):
    nodes = agents(tmp_path, ranks={"deadline": 2.0})
    nodes[0].wait_for(1024)
    ranks = [rank for node in nodes for rank in node.ranks()]
    assert set().union(*map(listening, ranks)) <= {LOOPBACK}
    os.kill(ranks[1], number)
    assert [node.end() for node in nodes] == [0, 0], [node.text() for node in nodes]
    texts = [node.text() for node in nodes]
    assert any(re.search(r"error: rank ([01]): rank (?!\1)[01] of 2 is lost", text) for text in texts), texts
    assert nodes[0].result() == undisturbed.result()
    assert not any(map(runs, ranks))


def test_a_rank_of_another_node_that_dies_while_the_run_is_built_is_lost(tmp_path):
    (tmp_path / "dying.py").write_text(DYING)
    nodes = agents(tmp_path, plugins={"path": [str(tmp_path)]}, env={"id": "dying:Dying-v0"})
    assert [node.end() for node in nodes] == [0, 0], [node.text() for node in nodes]
    texts = [node.text() for node in nodes]
    assert any("error: rank 0: rank 1 of 2 is lost" in text for text in texts), texts


def test_a_stop_of_torchrun_saves_the_state_and_rlcore_alone_goes_on(undisturbed, tmp_path):
    trained = Trained(tmp_path, under=ONE_HOST)
    trained.wait_for(512)
    trained.process.send_signal(signal.SIGTERM)
    trained.end()  # torchrun's own exit code is 1
    status = read_status(trained.folder)
    assert (status["state"], status["reason"]) == ("stopped-resumable", "SIGTERM"), trained.text()
    assert trained.entries()[-1].frames == status["frames"]
    again = Trained(tmp_path, "--resume")
    assert again.end() == 0, again.text()
    assert again.result() == undisturbed.result()


def test_ranks_end_with_torchrun(tmp_path):
    trained = Trained(tmp_path, under=ONE_HOST, run={"total_frames": 1_000_000})
    trained.wait_for(0)
    ranks = trained.ranks()
    trained.process.kill()
    until = time.monotonic() + 2.0
    while any(map(runs, ranks)) and time.monotonic() < until:
        time.sleep(0.01)
    assert not any(map(runs, ranks))
    trained.end()
    assert "ends: the process that started it is gone" in trained.text()


def test_another_start_is_another_run_until_it_says_resume(undisturbed, tmp_path):
    first = Trained(tmp_path, "--until", "1024", under=ONE_HOST)
    assert first.end() == 0, first.text()
    second = Trained(tmp_path, under=ONE_HOST, output="second.txt")
    assert second.end() != 0
    assert "exists already" in second.text()
    assert "rank 0 cannot begin" in second.text()
    third = Trained(tmp_path, "--resume", under=ONE_HOST, output="third.txt")
    assert third.end() == 0, third.text()
    assert third.result() == undisturbed.result()
