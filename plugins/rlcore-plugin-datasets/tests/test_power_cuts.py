"""A power cut at any moment of writing leaves a dataset that is whole, or none."""

import json
import shutil
import subprocess
import sys

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


WRITE_FOR_EVER = """
import itertools, sys
from pathlib import Path
from rlcore_plugin_datasets.dataset import Dataset, write_dataset
like = Dataset(sys.argv[1])
episodes = [*like.episodes()]
def told():
    for number in itertools.count():
        if number == 50:
            print("writing", flush=True)
        yield from episodes
write_dataset(Path(sys.argv[2]), like.spaces, told(), {}, data_format=sys.argv[3])
"""


@pytest.mark.parametrize("form", ["hdf5", "arrow", "parquet"])
def test_what_a_killed_process_left_is_removed_by_the_next_and_not_before(form, tmp_path, caplog):
    like = write_dataset(tmp_path / "like", SPACES, EPISODES, {}, data_format=form)
    process = subprocess.Popen(
        [sys.executable, "-c", WRITE_FOR_EVER, like.folder, tmp_path / "killed", form], stdout=subprocess.PIPE
    )
    try:
        assert process.stdout.readline() == b"writing\n"
        (left,) = tmp_path.glob(".killed-unfinished-*")
        write_dataset(tmp_path / "beside", SPACES, EPISODES, {}, data_format=form)
        assert left.exists(), "its process still writes"
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()
    write_dataset(tmp_path / "killed", SPACES, EPISODES, {}, data_format=form)
    assert sorted(place.name for place in tmp_path.iterdir()) == ["beside", "killed", "like"]
    assert f"{left} is removed: a killed process left it" in caplog.text
    check_alike(list(Dataset(tmp_path / "killed").episodes()), EPISODES)
    assert not (tmp_path / "killed/.lock").exists()


def test_what_cannot_be_told_from_a_dataset_that_is_written_is_named_and_kept(tmp_path, caplog):
    left = tmp_path / ".other-unfinished-abc123"
    left.mkdir()
    write_dataset(tmp_path / "toy", SPACES, EPISODES, {})
    assert left.exists()
    assert f"{left} may be what a killed process left" in caplog.text
