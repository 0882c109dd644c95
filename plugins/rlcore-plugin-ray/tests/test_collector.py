"""The collector on a real Ray; the tests themselves are in `inside.py`, where one process is connected to it."""

import pytest

pytest.importorskip("ray", reason="Ray is not installed: pip install rlcore-plugin-ray")

from .on_ray import run_inside


@pytest.mark.slow
def test_actors_do_what_workers_do():
    run_inside("inside.py")
