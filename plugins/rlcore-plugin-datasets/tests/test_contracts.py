"""The contracts of the plugin and of its buffer."""

import numpy as np
import pytest
from gymnasium.spaces import Box
from rlcore_plugin_datasets.dataset import write_dataset
from rlcore_plugin_datasets.episode import Episode

from rlcore.testing.contracts import DataBufferContract, PluginContract
from rlcore.testing.contracts.data_buffer import COLLECTS_NOTHING

# of the toy env, whose actions are an unbounded number
SPACES = (Box(-np.inf, np.inf, (3,), np.float32), Box(-np.inf, np.inf, (1,), np.float32))


def toy_episodes(count=6, steps=10):
    draw = np.random.default_rng(0)
    for number in range(count):
        ends = np.arange(steps) == steps - 1
        yield Episode(
            draw.normal(size=(steps + 1, 3)).astype(np.float32),
            draw.normal(size=(steps, 1)).astype(np.float32),
            draw.normal(size=steps) + number,
            ends & (number % 2 == 0),
            ends & (number % 2 == 1),
            seed=number,
        )


class TestPlugin(PluginContract):
    plugin = "datasets"


class DatasetContract(DataBufferContract):
    use = "datasets:dataset"
    around = {**COLLECTS_NOTHING, "loss": {"use": "testing:toy"}}
    keys = {}

    @pytest.fixture(autouse=True)
    def _data(self, tmp_path_factory, monkeypatch):
        folder = tmp_path_factory.mktemp("data") / "toy"
        write_dataset(folder, SPACES, toy_episodes(), {})
        common = {"path": str(folder), "minibatch_size": 8, "updates_per_iteration": 4}
        monkeypatch.setattr(type(self), "config", {**common, **self.keys})

    def test_runs_and_resumes_in_a_small_run(self, tmp_path):
        """It is in the tests of rlcore-plugin-offline, whose losses read what is in the data."""


class TestDataset(DatasetContract):
    pass


class TestMappedDatasetOfSeveralSteps(DatasetContract):
    keys = {"storage": "memmap", "n_steps": 3, "best": 0.5}
