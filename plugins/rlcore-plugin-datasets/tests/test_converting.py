"""Other files become datasets: those of d3rlpy, and datasets that are compressed."""

import h5py
import minari
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from rlcore_plugin_datasets.dataset import Dataset, write_dataset

from rlcore.cli import command_line

from .test_contracts import SPACES, toy_episodes

OBSERVATIONS = np.arange(20, dtype=np.float32).reshape(10, 2)
ACTIONS = np.array([0, 1, 2, 1, 0, 1, 0, 1, 2, 2])
REWARDS = np.arange(10, dtype=np.float32)


def second_version(file):
    """Write what `ReplayBuffer.dump` of d3rlpy 2 writes: four steps that terminate, six that were cut off."""
    with h5py.File(file, "w") as data:
        data["columns"] = ["observations", "actions", "rewards", "terminated"]
        data["num_episodes"] = 2
        for number, (part, terminated) in enumerate(((slice(0, 4), True), (slice(4, 10), False))):
            data[f"observations_{number}"] = OBSERVATIONS[part]
            data[f"actions_{number}"] = ACTIONS[part, np.newaxis]
            data[f"rewards_{number}"] = REWARDS[part, np.newaxis]
            data[f"terminated_{number}"] = terminated
        data["version"] = "2.1"


def first_version(file):
    """Write the same as `MDPDataset.dump` of d3rlpy 1 does."""
    ends = np.isin(np.arange(10), (3, 9))
    with h5py.File(file, "w") as data:
        data["observations"], data["actions"], data["rewards"] = OBSERVATIONS, ACTIONS, REWARDS
        data["terminals"], data["episode_terminals"] = np.arange(10) == 3, ends
        data["version"] = "1.0"


@pytest.mark.parametrize("write", [second_version, first_version])
def test_files_of_d3rlpy_become_datasets(write, tmp_path, capsys):
    write(tmp_path / "theirs.h5")
    out = tmp_path / "ours"
    assert command_line.main(["data", "convert", str(tmp_path / "theirs.h5"), "--out", str(out)]) == 0
    dataset = Dataset(out)
    ended, cut_off = dataset.episodes()
    assert dataset.spaces == (Box(-np.inf, np.inf, (2,), np.float32), Discrete(3))
    assert list(dataset.problems()) == []
    assert (len(ended), len(cut_off)) == (4, 5), "the last step of what was cut off has the last observation"
    assert np.array_equal(ended.observations[:4], OBSERVATIONS[:4])
    assert np.array_equal(cut_off.observations, OBSERVATIONS[4:])
    assert (ended.actions.tolist(), cut_off.rewards.tolist()) == ([0, 1, 2, 1], [4, 5, 6, 7, 8])
    assert (ended.terminations.tolist()[-1], cut_off.truncations.tolist()[-1]) == (True, True)
    assert minari.MinariDataset(out).total_steps == 9


def test_data_get_the_spaces_of_an_env(tmp_path, capsys):
    with h5py.File(tmp_path / "theirs.h5", "w") as data:
        data["observations"], data["actions"] = np.zeros((5, 4)), np.zeros(5, np.int32)
        data["rewards"], data["terminals"] = np.ones(5), np.arange(5) == 4
    arguments = ["data", "convert", str(tmp_path / "theirs.h5"), "--out", str(tmp_path / "ours"), "--env"]
    assert command_line.main([*arguments, "Pendulum-v1"]) == 2
    assert "and those of the data are" in capsys.readouterr().err
    assert command_line.main([*arguments, "Nothing-v1"]) == 2
    assert command_line.main([*arguments, "CartPole-v1"]) == 0
    dataset = Dataset(tmp_path / "ours")
    assert (dataset.metadata.env_id, dataset.spaces[1]) == ("CartPole-v1", Discrete(2))
    assert next(dataset.episodes()).observations.dtype == np.float32


def test_a_dataset_is_compressed(tmp_path):
    many = [episode for _ in range(30) for episode in toy_episodes()]
    plain = write_dataset(tmp_path / "plain", SPACES, many, {})
    out = tmp_path / "small"
    assert command_line.main(["data", "convert", str(plain.folder), "--out", str(out), "--compress", "4"]) == 0
    with h5py.File(out / "main_data.hdf5") as data:
        assert data["episode_0/observations"].compression == "gzip"
    assert all(
        np.array_equal(a.observations, b.observations)
        for a, b in zip(plain.episodes(), Dataset(out).episodes(), strict=True)
    )
    assert minari.MinariDataset(out).total_episodes == len(many)


@pytest.mark.parametrize("content", [b"nothing", b""])
def test_what_is_no_such_file_is_named(content, tmp_path, capsys):
    (tmp_path / "bad.h5").write_bytes(content)
    assert command_line.main(["data", "convert", str(tmp_path / "bad.h5"), "--out", str(tmp_path / "ours")]) != 0
    assert "bad.h5 cannot be read" in capsys.readouterr().err
