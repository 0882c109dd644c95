"""The contracts of the plugin and of its buffer."""

from pathlib import Path

import numpy as np
import pytest
from gymnasium.spaces import Box
from rlcore_plugin_datasets.dataset import write_dataset
from rlcore_plugin_datasets.episode import Episode
from rlcore_plugin_datasets.transitions import ENTRIES
from rlcore_plugin_testing.contracts import (
    BufferContract,
    ComponentContract,
    DataBufferContract,
    HookContract,
    PluginContract,
)
from rlcore_plugin_testing.contracts.data_buffer import COLLECTS_NOTHING
from rlcore_plugin_testing.small_run import TOY_CONFIG

from rlcore.types import MASK

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


class OnToyData:
    """The buffer has a dataset of the toy env.

    Attributes:
        keys: of its section, besides that of the path.
        shares: whether rows share observations, as those of large data do.
    """

    keys = {}
    shares = False

    @pytest.fixture(autouse=True)
    def _data(self, tmp_path_factory, monkeypatch):
        folder = tmp_path_factory.mktemp("data") / "toy"
        write_dataset(folder, SPACES, toy_episodes(), {})
        monkeypatch.setattr(type(self), "config", {"path": str(folder), **self.keys})
        if self.shares:
            monkeypatch.setattr("rlcore_plugin_datasets.rows.SHARED_FROM", 0)


class TestDataset(OnToyData, DataBufferContract):
    use = "datasets:dataset"
    around = {**COLLECTS_NOTHING, "loss": {"use": "testing:toy"}}
    keys = {"minibatch_size": 8, "updates_per_iteration": 4}

    def test_runs_and_resumes_in_a_small_run(self, tmp_path):
        """It is in the tests of rlcore-plugin-offline, whose losses read what is in the data."""


class TestMappedDatasetOfSeveralSteps(TestDataset):
    keys = {**TestDataset.keys, "storage": "memmap", "n_steps": 3, "best": 0.5, "return_to_go": True}


class TestSharedObservations(TestDataset):
    shares = True


class TestSequences(OnToyData, DataBufferContract):
    use = "datasets:dataset-sequences"
    around = {**COLLECTS_NOTHING, "model": {"use": "testing:toy-memory"}, "loss": {"use": "testing:toy"}}
    keys = {"minibatch_size": 4, "sequence_length": 3, "burn_in": 2, "updates_per_iteration": 4}

    def test_runs_and_resumes_in_a_small_run(self, tmp_path):
        """It is in the tests of rlcore-plugin-offline, whose losses read what is in the data."""


class TestSequencesOfSharedObservations(TestSequences):
    shares = True


class TestMixed(OnToyData, BufferContract):
    """What the contract says of a replay is said of the samples that are no data."""

    use = "datasets:mixed"
    around = {
        "plugins": {"files": [str(Path(__file__).parents[2] / "rlcore-plugin-replay/tests/loose_parts.py")]},
        "model": TOY_CONFIG["model"],
        "loss": {"use": "loose-parts:td"},
        "estimator": None,
    }
    keys = {"capacity": 40, "minibatch_size": 8, "updates_per_batch": 4, "warmup_frames": 16, "share": 0.25}
    keeps_experience = True

    def batch(self, context, masked=()):
        return super().batch(context, masked).select(*ENTRIES, MASK, strict=False)

    def trained(self, minibatch, key):
        return super().trained(minibatch, key)[2:]


class TestMixedAfterUpdatesFromTheDataAlone(OnToyData, ComponentContract):
    """The batches of the contract of buffers come later; so only that a run goes on as it should."""

    kind = "buffer"
    use = "datasets:mixed"
    around = TestMixed.around
    keys = {**TestMixed.keys, "n_steps": 2, "storage": "memory", "offline_updates": 6, "offline_updates_per_batch": 4}


class TestRecord(HookContract):
    """A run without a folder records nothing; `test_recording.py` says what one with a folder does."""

    use = "datasets:record"
