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

from .several import Trained, runs


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


ON_RANK_ONE = """
import time
from pydantic import BaseModel
from rlcore import Component, hookimpl


class OnRankOne:
    class Config(BaseModel):
        does: str

    def __init__(self, config, context):
        self.does, self.context = config.does, context

    @hookimpl
    def post_steps(self):
        if self.context.group.rank != 1 or self.context.progress.frames < 512:
            return
        if self.does == "raise":
            raise RuntimeError("on purpose")
        time.sleep(600.0 if self.does == "hang" else 0.05)


@hookimpl
def provide_components():
    return [Component("hook", "rank-one", OnRankOne, summary="acts on one rank")]
"""


@pytest.fixture
def with_fault(tmp_path):
    """Train with a hook that does something on rank 1 from frame 512 on."""
    (tmp_path / "onrank.py").write_text(ON_RANK_ONE)
    sections = {"plugins": {"files": [str(tmp_path / "onrank.py")]}}

    def train(does, **changes):
        return Trained(tmp_path, hook=[{"use": "onrank:rank-one", "does": does}], **sections, **changes)

    return train


@pytest.mark.slow
def test_the_status_says_what_the_rank_that_failed_said(with_fault):
    trained = with_fault("raise")
    assert trained.end() == 7, trained.text()
    status = read_status(trained.folder)
    assert status["state"] == "failed-resumable"
    assert re.match(r"rank 1: .*on purpose", status["reason"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"hang_after": 2, "deadline": 30.0}, r"rank 1 ended with exit code 3: nothing moved for 2 s"),
        ({"hang_after": 0, "deadline": 2.0}, r"rank 1 is lost, as rank 0 says \(rank 1 of 2 is lost: it has not moved"),
    ],
    ids=["seen by its watchdog", "seen by the other rank"],
)
def test_a_rank_that_hangs_is_blamed_and_not_the_one_that_waits(with_fault, limits, said):
    run, ranks = {"hang_after": limits["hang_after"]}, {"deadline": limits["deadline"], "restarts": 0}
    trained = with_fault("hang", run=run, ranks=ranks)
    assert trained.end() == 3, trained.text()
    reason = read_status(trained.folder)["reason"]
    assert re.search(f"1 deaths of ranks without progress in between: {said}", reason), reason
    assert "rank 0: nothing moved" not in trained.text()


@pytest.mark.slow
def test_a_rank_that_is_slow_is_named_in_the_metrics(with_fault):
    trained = with_fault("wait", run={"total_frames": 1024}, evaluator={"every": 1024})
    assert trained.end() == 0, trained.text()
    rows = [line.split(",") for line in (trained.folder / "timings.csv").read_text().splitlines()[1:]]
    last = {key: float(value) for frames, key, value in rows if int(frames) == 896}
    assert last["time/slowest_rank"] == 1.0
    waited = [last[f"time/waited/rank-{rank}"] for rank in (0, 1)]
    assert waited[0] > max(0.08, waited[1]), "two iterations, in each a twentieth second"


@pytest.mark.slow
def test_h1_a_rank_that_stands_still_is_blamed_where_the_others_would_hang_before_the_deadline(undisturbed, tmp_path):
    trained = Trained(tmp_path, ranks={"deadline": 4.0}, run={"hang_after": 2})
    trained.wait_for(512)
    os.kill(trained.ranks()[1], signal.SIGSTOP)
    assert trained.end() == 0, trained.text()
    assert "rank 1 did not move for 4 s" in trained.text()
    assert "rank 0" not in trained.text()
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
