"""H: a process of several that train together dies, hangs, or is told to stop; the run goes on, and loses nothing."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest
from rlcore_plugin_testing.train_command import children

from rlcore.run_folder.status import read_status
from tests.faults.several import Trained, runs


def shared_memory_with_a_name(process):
    lines = Path(f"/proc/{process}/maps").read_text().splitlines()
    return [line for line in lines if "/dev/shm/" in line and not line.endswith("(deleted)")]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Return an uninterrupted run of the config."""
    trained = Trained(tmp_path_factory.mktemp("undisturbed"))
    assert trained.end() == 0, trained.text()
    return trained


def test_h1_a_rank_that_is_killed_costs_time_and_nothing_else(undisturbed, tmp_path):
    trained = Trained(tmp_path)
    trained.wait_for(512)
    first = trained.ranks()
    assert not [path for rank in first for path in shared_memory_with_a_name(rank)]  # which could be left behind
    os.kill(first[1], signal.SIGKILL)
    assert trained.end() == 0, trained.text()
    assert "rank 1 was killed by SIGKILL" in trained.text()
    assert trained.result() == undisturbed.result()
    assert not any(map(runs, first))


@pytest.mark.slow
@pytest.mark.parametrize("which", ["first rank", "both ranks", "template"])
def test_h1_whichever_process_is_killed(undisturbed, tmp_path, which):
    trained = Trained(tmp_path)
    trained.wait_for(512)
    ranks = trained.ranks()
    killed = {"first rank": ranks[:1], "both ranks": ranks, "template": children(trained.process.pid)}[which]
    for process in killed:
        os.kill(process, signal.SIGKILL)
    assert trained.end() == 0, trained.text()
    assert trained.result() == undisturbed.result()


@pytest.mark.slow
def test_h1_a_rank_that_stands_still_is_replaced_after_the_deadline(undisturbed, tmp_path):
    trained = Trained(tmp_path, ranks={"deadline": 1.0})
    trained.wait_for(512)
    os.kill(trained.ranks()[1], signal.SIGSTOP)
    assert trained.end() == 0, trained.text()
    assert re.search(r"rank 1 did not move for 1 s", trained.text())
    assert trained.result() == undisturbed.result()


@pytest.mark.slow
def test_h1_ranks_that_die_again_and_again_end_the_run(tmp_path):
    trained = Trained(tmp_path, ranks={"restarts": 2}, env={"use": "testing:faulty", "fault": "kill", "at": 40})
    assert trained.end() == 3, trained.text()
    assert "3 deaths of ranks without progress" in trained.text()
    assert read_status(trained.folder)["state"] == "failed-resumable"


@pytest.mark.slow
def test_h4_ranks_end_with_the_supervisor(tmp_path):
    trained = Trained(tmp_path, run={"total_frames": 1_000_000})
    trained.wait_for(0)
    everybody = [*children(trained.process.pid), *trained.ranks()]
    os.kill(trained.process.pid, signal.SIGKILL)
    until = time.monotonic() + 2.0
    while any(map(runs, everybody)) and time.monotonic() < until:
        time.sleep(0.01)
    assert not any(map(runs, everybody))
    trained.end()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_a_stop_is_agreed_and_the_run_goes_on_from_there(undisturbed, tmp_path, number):
    trained = Trained(tmp_path)
    trained.wait_for(512)
    trained.process.send_signal(number)
    assert trained.end() == 128 + number, trained.text()
    status = read_status(trained.folder)
    assert status["state"] == "stopped-resumable"
    assert status["reason"] == signal.Signals(number).name
    assert trained.entries()[-1].frames == status["frames"]
    again = Trained(tmp_path, "--resume")
    assert again.end() == 0, again.text()
    assert again.result() == undisturbed.result()


@pytest.mark.slow
def test_an_error_of_an_env_is_no_death(tmp_path):
    trained = Trained(tmp_path, env={"use": "testing:faulty", "fault": "raise", "at": 200})
    assert trained.end() == 3, trained.text()
    assert "on purpose" in trained.text()
    assert "all ranks go on" not in trained.text()
    status, newest = read_status(trained.folder), trained.entries()[-1]
    assert status["state"] == "failed-resumable"
    assert "on purpose" in status["reason"]
    assert newest.frames == status["frames"] > 0, "the state before the failure is saved, as in one process"
    assert f"the state of frame {newest.frames}, before the failure, is saved" in trained.text()
    assert "rank-1/collector" in newest.manifest["digests"]
