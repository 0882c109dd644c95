"""Cloning a policy that remembers: what was seen before decides, so that one observation is not enough."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from rlcore_plugin_datasets.dataset import write_dataset
from rlcore_plugin_datasets.episode import Episode

from rlcore import build, load_config

SPACES = (Box(-1, 1, (1,), np.float32), Discrete(2))
MODELS = {
    "with memory": (
        {"use": "recurrent:gru", "size": 16, "parts": ["actor"]},
        {"use": "datasets:dataset-sequences", "minibatch_size": 8, "sequence_length": 8, "burn_in": 2},
    ),
    "without memory": (
        {"use": "mlp", "hidden": [16], "parts": ["actor"]},
        {"use": "datasets:dataset", "minibatch_size": 64},
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a dataset whose actions say whether the observation before was positive."""
    draw, place, episodes = np.random.default_rng(0), tmp_path_factory.mktemp("data") / "before", []
    for length in range(6, 26):
        seen = draw.uniform(-1, 1, size=(length + 1, 1)).astype(np.float32)
        actions = np.concatenate([[0], (seen[: length - 1, 0] > 0).astype(np.int64)])
        last = np.arange(length) == length - 1
        episodes.append(Episode(seen, actions, np.zeros(length), last, np.zeros(length, bool)))
    write_dataset(place, SPACES, episodes, {})
    return place


def log_prob(folder, model, buffer, *changes):
    config = {
        "run": {"name": "clone", "total_updates": 300},
        "model": model,
        "loss": {"use": "offline:bc"},
        "optimizer": [{"use": "adam", "lr": 0.02}],
        "buffer": {**buffer, "path": str(folder), "updates_per_iteration": 100},
        "metrics": {"every": 100},
    }
    trainer = build(load_config(config, list(changes)), write=False).trainer
    minibatch = next(iter(trainer.parts.buffer.minibatches(None)))
    trainer.train()
    return float(trainer.parts.learner._loss(minibatch)["log_prob"])


def test_a_policy_with_memory_clones_what_one_without_cannot(folder):
    found = {name: log_prob(folder, *parts) for name, parts in MODELS.items()}
    assert found["with memory"] > -0.1
    assert found["without memory"] < -0.6, "one observation says nothing of the one before"


@pytest.mark.slow
def test_the_compiled_update_does_the_same(folder):
    assert log_prob(folder, *MODELS["with memory"], "learner.compile=true") > -0.1
