"""Envs of Brax itself: bare ones, and those within its wrapper that cuts episodes off."""

import importlib
from importlib.util import find_spec

import pytest
from rlcore_plugin_testing.resumed import check_resumed

from rlcore.errors import ConfigError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("brax") is None or find_spec("jax") is None, reason="brax is not installed"),
]

BARE = {"id": "brax.envs:get_environment", "kwargs": {"env_name": "fast"}, "max_episode_steps": 9}
WRAPPED = {
    "id": "brax.envs:create",
    "kwargs": {"env_name": "inverted_pendulum", "episode_length": 12, "auto_reset": False},
}


@pytest.fixture(scope="module", autouse=True)
def imported():
    """Import Brax before the first run: something that it imports draws from NumPy's generator."""
    importlib.import_module("brax.envs")


def run_of(env, folder):
    """Train PPO, stop in the middle, resume, and hold both against each other."""
    sections = {
        "run": {"total_frames": 1024},
        "env": {"use": "jax", "num_envs": 16, **env},
        "model": {"use": "mlp", "hidden": [8]},
        "loss": {"use": "ppo"},
        "estimator": {"use": "gae"},
        "collector": {"use": "device", "frames_per_batch": 256},
        "buffer": {"minibatch_size": 64},
    }
    return check_resumed(folder, sections=sections)


@pytest.mark.parametrize("env", [BARE, WRAPPED], ids=["bare", "wrapped"])
def test_a_run_stops_and_resumes_to_the_bit(env, tmp_path):
    trainer = run_of(env, tmp_path)
    lengths = {episode.length for episode in trainer.parts.collector.episodes()}
    assert max(lengths) == env.get("max_episode_steps", 12)
    ends = trainer.parts.collector.collect()["next"]
    assert ends["truncated"].any()
    assert ends["terminated"].any() == (env is WRAPPED), "an episode of Brax's env for tests never ends"
    assert not (ends["terminated"] & ends["truncated"]).any()


def test_an_env_that_begins_episodes_itself_is_refused(tmp_path):
    wrapped = {"id": "brax.envs:create", "kwargs": {"env_name": "fast"}}
    with pytest.raises(ConfigError, match=r"begins the next episode itself, .*create\(auto_reset=False\)"):
        run_of(wrapped, tmp_path)
