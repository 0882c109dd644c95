"""Ranks that a launcher places: they and the process that watches over them see each other through a mailbox alone."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from .several import Trained

PLACED = {
    "ranks": {"use": "places:places"},
    # so many that ranks still train when the test acts
    "run": {"total_frames": 4_096},
}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Return an uninterrupted run whose ranks share the memory of the command."""
    trained = Trained(tmp_path_factory.mktemp("undisturbed"), run=PLACED["run"])
    assert trained.end() == 0, trained.text()
    return trained


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install the launcher for the processes that are started."""
    told = tmp_path / "site" / "places-1.0.dist-info"
    told.mkdir(parents=True)
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: places\nVersion: 1.0\n")
    (told / "entry_points.txt").write_text("[rlcore]\nplaces = places\n")
    shutil.copy(Path(__file__).with_name("places.py"), told.parent)
    monkeypatch.setenv("PYTHONPATH", str(told.parent))


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_placed_rank_that_dies_or_stands_still_costs_time_and_nothing_else(undisturbed, tmp_path, number):
    trained = Trained(tmp_path, **PLACED | {"ranks": PLACED["ranks"] | {"deadline": 5.0}})
    trained.wait_for(512)
    os.kill(trained.ranks()[1], number)
    assert trained.end() == 0, trained.text()
    killed = "was killed by SIGKILL (perhaps for lack of memory)"
    how = killed if number == signal.SIGKILL else "did not move for 5 s"
    assert f"rank 1 {how} at frame" in trained.text()
    assert "all ranks go on from frame" in trained.text()
    assert "frame 4,096: checkpoint" in trained.text(), "what rank 0 writes arrives here"
    assert trained.result() == undisturbed.result()
