"""A power cut at any moment of writing leaves a dataset that is whole, or none."""

import json
import shutil

import pytest
from rlcore_plugin_datasets import dataset, syncing
from rlcore_plugin_datasets.dataset import Dataset, write_dataset
from rlcore_plugin_datasets.metadata import METADATA
from rlcore_plugin_testing.faults.crash_states import CrashRecorder

from rlcore.errors import StorageError

from .test_contracts import SPACES, toy_episodes
from .test_formats import check_alike

EPISODES = list(toy_episodes(2, steps=3))


@pytest.fixture(autouse=True)
def _in_one_thread(monkeypatch):
    """What the disk holds is told from the order of the calls, which several threads would mix."""
    monkeypatch.setattr(syncing, "_AT_ONCE", 1)


def recorded(folder, form="arrow"):
    """Write a dataset under a recorder, which does not see how h5py makes its file."""
    with CrashRecorder(folder) as recorder:
        write_dataset(folder / "toy", SPACES, EPISODES, {}, data_format=form)
        recorder.acknowledge("written")
    return recorder


def named_in(place):
    """Return the folders that tell of data, where their metadata can be read."""
    for file in place.glob(f"*/{METADATA}"):
        try:
            json.loads(file.read_bytes())
        except ValueError:
            continue
        yield file.parent


def check_states(recorder, scratch, most):
    """Look at what a power cut may leave, and return how many states that were, and in how many the dataset was."""
    count = whole = 0
    for count, state in enumerate(recorder.states(most), start=1):  # noqa: B007 - it is used after the loop
        place = scratch / "cut"
        state.write(place)
        for folder in named_in(place):
            try:
                found = Dataset(folder)
                found.verified()
                check_alike(list(found.episodes()), EPISODES)
            except StorageError as error:
                pytest.fail(f"it looks whole and is not: {error}\n{state}")
        there = (place / "toy").exists()
        assert there or state.acknowledged is None, state
        whole += there
        shutil.rmtree(place)
    return count, whole


@pytest.fixture
def disk(tmp_path):
    """A folder that is safely on disk."""
    (tmp_path / "disk").mkdir()
    return tmp_path / "disk"


@pytest.mark.parametrize("form", ["arrow", "parquet"])
def test_a_power_cut_leaves_a_whole_dataset_or_none(form, disk, tmp_path):
    count, whole = check_states(recorded(disk, form), tmp_path, most=200)
    assert count > 100
    assert 1 < whole < count


@pytest.mark.parametrize("skipped", ["part-0.arrow", METADATA, "1", "disk"])
def test_the_proof_fails_where_one_sync_is_left_out(skipped, disk, tmp_path, monkeypatch):
    sync = syncing.sync

    def sync_others(path):
        if path.name != skipped:
            sync(path)

    monkeypatch.setattr(syncing, "sync", sync_others)
    monkeypatch.setattr(dataset, "sync", sync_others)
    recorder = recorded(disk)
    with pytest.raises((pytest.fail.Exception, AssertionError)):
        check_states(recorder, tmp_path, most=100)


def test_a_disk_that_refuses_a_file_is_an_error_and_leaves_nothing(disk, monkeypatch):
    sync, calls = syncing.sync, []

    def refuse(path):
        calls.append(path)
        if path.name == "part-0.arrow":
            raise OSError(28, "No space left on device")
        sync(path)

    monkeypatch.setattr(syncing, "sync", refuse)
    monkeypatch.setattr(syncing, "_AT_ONCE", 8)
    with pytest.raises(StorageError, match=r"cannot be written: .*No space left"):
        write_dataset(disk / "toy", SPACES, EPISODES, {}, data_format="arrow")
    assert calls
    assert list(disk.iterdir()) == []
