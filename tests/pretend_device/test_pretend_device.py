"""Every part of the tree runs where a GPU would be: on a device that is none, which tells what is mixed and counted.

A process has one such device and cannot be rid of it, so each test here starts one of its own.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent.relative_to(ROOT)
# of the components, each in a process of its own: all at once would take most of the time that a test has
PARTS = 4


def passes(*arguments):
    """Run pytest on the pretend device; show what it says where something fails."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "rlcore_plugin_testing.pretend_device",
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [*command, *map(str, arguments)], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5_000:]
    return done.stdout


@pytest.mark.slow
def test_algorithms_run_on_another_device():
    """Every preset trains and resumes there, and copies are as many as they should be."""
    assert " passed" in passes(HERE / "on_the_device.py")


@pytest.mark.slow
def test_envs_of_tensors_run_on_another_device():
    """An iteration asks the host nothing, and has the numbers of the CPU."""
    assert " passed" in passes(HERE / "with_envs_of_tensors.py")


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_components_run_on_another_device(part):
    """Every component with a contract trains there in a small run, and resumes to the same bits."""
    suites = ["tests/contract/test_components.py", *sorted(ROOT.glob("plugins/*/tests/test_contracts.py"))][part::PARTS]
    told = passes("-p", "tests.pretend_device.those_with_tensors", "-k", "runs_and_resumes", *suites)
    assert int(told.rpartition(" passed")[0].split()[-1]) > 40
