"""A run takes as much memory after many updates as after a few."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "sac-pendulum.toml"

# prints the resident memory, in bytes, after 200 updates and at the end
PROGRAM = """
import sys

import rlcore
from rlcore_plugin_testing.memory import resident


class Watch:
    @rlcore.hookimpl
    def post_steps(self, batch, trainer):
        if trainer.progress.updates == 200:
            print(resident())


config = rlcore.load_config(sys.argv[1], sys.argv[2:])
rlcore.build(config, write=False, hooks=[Watch()]).trainer.train()
print(resident())
"""


@pytest.mark.slow
def test_a_run_does_not_grow_while_its_metrics_wait_to_be_written():
    changes = ("run.total_frames=2_600", "metrics.every=100_000", "evaluator.episodes=1", "hook=[]")
    words = [sys.executable, "-c", PROGRAM, str(EXAMPLE), *changes]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    early, late = (int(line) for line in done.stdout.split())
    assert late - early < 100 << 20
