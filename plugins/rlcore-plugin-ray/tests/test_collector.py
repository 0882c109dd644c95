"""The collector on a real Ray; the tests themselves are in `inside.py`, where one process is connected to it."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="Ray is not installed: pip install rlcore-plugin-ray")

from .on_ray import Namespace, Ray

FOLDER = Path(__file__).parent


@pytest.mark.slow
def test_actors_do_what_workers_do():
    namespace = Namespace()
    try:
        ray = Ray(namespace)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
            str(FOLDER / "inside.py"),
        ]
        process = namespace.start(command, {"RLCORE_TEST_RAY": ray.address}, stdout=subprocess.PIPE, text=True)
        output, _ = process.communicate(timeout=300)
        ray.close()
    finally:
        namespace.close()
    assert process.returncode == 0, output
