"""Tests of TorchRL run with the names of rlcore: imports are replaced, and what fails is counted by its reason."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.parity.run_torchrl_tests import rewritten

SCRIPT = Path(__file__).with_name("run_torchrl_tests.py")
TESTS = """
from torchrl.envs import GymEnv
from torchrl.trainers import SelectKeys, Trainer
from torchrl.trainers.helpers.envs import EnvConfig
from mocking_classes import CountingEnv

def test_the_hook_is_of_rlcore():
    assert SelectKeys.__module__.startswith("rlcore")

def test_a_name_that_is_not_there():
    SelectKeys(["a"]).nosuch
"""


def test_names_that_rlcore_has_come_from_there():
    source, kept = rewritten(TESTS)
    assert "from rlcore import SelectKeys\nfrom rlcore import Trainer" in source
    assert "from torchrl.testing.mocking_classes import CountingEnv" in source
    assert "from torchrl.envs import GymEnv" in source
    assert kept == ["torchrl.trainers.helpers.envs.EnvConfig"]


@pytest.mark.slow
def test_what_passes_is_counted_and_what_fails_has_its_reason(tmp_path):
    file = tmp_path / "theirs.py"
    file.write_text(TESTS)
    command = [sys.executable, str(SCRIPT), str(file)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout.splitlines()
    assert shown[0] == "stay TorchRL's: torchrl.trainers.helpers.envs.EnvConfig"
    assert shown[1] == "1 passed, 1 failure"
    assert shown[2] == "   1 AttributeError: 'SelectKeys' object has no attribute 'nosuch'"
