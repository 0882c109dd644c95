"""What a new user does, from the wheels alone: `tests/new_user.py` is the script, and can be run by itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "new_user.py"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_new_user_gets_from_the_wheels_to_a_policy_that_plays_as_the_run_did():
    """With observation normalisation, so that a policy without it would play otherwise."""
    words = [sys.executable, str(SCRIPT), "--env", "InvertedDoublePendulum-v5", "--frames", "4_000"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "evaluate the export" in done.stdout, done.stdout
