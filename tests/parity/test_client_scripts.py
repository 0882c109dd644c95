"""Scripts of users of TorchRL's trainer, killed and resumed, end where TorchRL's uninterrupted run ends."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torchrl")
sys.path.insert(0, str(Path(__file__).parent))

from client_scripts import KILLS, SCRIPTS, distance, run, run_killed

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_that_is_killed_and_resumed_learns_what_torchrl_learns_uninterrupted(name, tmp_path):
    expected = run("torchrl.trainers", name)
    assert distance(run("rlcore", name), expected) == 0
    assert distance(run_killed("rlcore", name, tmp_path, KILLS[:1]), expected) == 0
