"""What is sent to worker processes, so that they find what the process of the learner has."""

import gymnasium as gym
import numpy as np
import pytest
from rlcore_plugin_testing import make_run

from .collecting import ALWAYS

FILE = """
import gymnasium
import numpy as np

from rlcore import hookimpl


class Two(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.ones(1, np.float32), 2.0, False, False, {}


gymnasium.register("Two-v0", Two)


@hookimpl
def provide_components():
    return []
"""


@pytest.fixture
def loose_file(tmp_path):
    """A plugin file that registers an env, under the name of no other test's."""
    path = tmp_path / "file_of_test_bundle.py"
    path.write_text(FILE)
    yield path
    gym.registry.pop("Two-v0", None)


def run_of(env, files=(), **keys):
    collector = {**ALWAYS, "num_workers": 2, "frames_per_batch": 8, "restarts": 0, **keys}
    sections = {"plugins": {"files": [str(file) for file in files]}, "env": env, "collector": collector}
    return make_run(sections=sections)


def test_workers_import_the_plugin_files_of_their_run_and_of_no_run_before_it(loose_file):
    two = {"use": "gymnasium", "id": "Two-v0", "num_envs": 2}
    of_file = run_of(two, [loose_file]).trainer.collector
    rewards = of_file.collect()["next", "reward"]
    of_file.close()
    assert np.all(rewards.numpy() == 2)
    loose_file.unlink()
    without = run_of({"use": "testing:toy", "num_envs": 2}).trainer.collector
    assert without.collect().numel() == 8
    without.close()
