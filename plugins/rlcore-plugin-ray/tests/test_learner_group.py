"""Groups of learners as actors of a real Ray; the tests themselves are in `learners_inside.py`."""

import subprocess
import sys
import time

import pytest

pytest.importorskip("ray", reason="Ray is not installed: pip install rlcore-plugin-ray")

from .on_ray import Namespace, run_inside

pytestmark = pytest.mark.slow


def test_learners_are_actors():
    run_inside("learners_inside.py", '--resources={"big_memory": 1}', seconds=590)


ALONE = """
import os
import sys
import numpy as np
import ray
from rlcore import PPOConfig
group = PPOConfig().learners(num_learners=1, launcher="ray").build_learner_group(env="CartPole-v1")
assert ray.is_initialized()
group.update({
    "obs": np.zeros((4, 4), np.float32), "actions": np.zeros(4, np.int64),
    **{name: np.ones(4, np.float32) for name in ("action_logp", "advantages", "value_targets")},
})
if sys.argv[1] == "shutdown":
    group.shutdown()
    assert not ray.is_initialized()
"""


@pytest.mark.parametrize("end", ["shutdown", "exit"])
def test_a_ray_that_is_started_for_learners_ends_with_them(end):
    namespace = Namespace()
    try:
        script = namespace.start([sys.executable, "-c", ALONE, end], stdout=subprocess.PIPE, text=True)
        output, _ = script.communicate(timeout=200)
        assert script.returncode == 0, output
        until = time.monotonic() + 30
        while namespace.processes() and time.monotonic() < until:
            time.sleep(0.1)
        assert namespace.processes() == []
    finally:
        namespace.close()
