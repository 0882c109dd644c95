"""Checkpoints on disk: commit, retention, damage, failure. Real files, and the back end of rlcore-plugin-torch."""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
import subprocess

import pytest
import torch
import xxhash
from rlcore_plugin_testing.faults.bits import forge
from rlcore_plugin_torch.checkpointer import TorchCheckpointer

from rlcore import Progress
from rlcore.checkpoints import manifest
from rlcore.checkpoints.manifest import STATE
from rlcore.checkpoints.provenance import Provenance
from rlcore.checkpoints.retention import Best, EveryFrames, Latest
from rlcore.checkpoints.store import Store
from rlcore.errors import StorageError
from rlcore.state.snapshot import Snapshot
from rlcore.training.schedule import SaveSchedule
from rlcore.types.progress import Every


@pytest.fixture
def store(tmp_path):
    return make(tmp_path / "checkpoints")


def make(folder, **settings):
    return Store(folder, TorchCheckpointer(TorchCheckpointer.Config(), None), "torch", **settings)


def save(store, frames, evaluation=None, value=None):
    states = {
        "model": {"weight": torch.full((3,), float(frames if value is None else value))},
        "progress": {"frames": frames},
    }
    provenance = Provenance(
        owners={"model": "some-dist", "progress": "rlcore"}, versions={"a": "1"}, inexact=("because",)
    )
    return store.save(Snapshot.of(states, Progress(1000, frames, updates=frames), evaluation), provenance)


def commit(store, states, frames):
    return store.save(Snapshot.of(states, Progress(1000, frames)), Provenance())


def weight(loaded):
    entry, states = loaded
    assert states["progress"]["frames"] == entry.frames
    return states["model"]["weight"].tolist()


def frames(store):
    return [entry.frames for entry in store.entries()]


def flip(file, position=None):
    content = bytearray(file.read_bytes())
    content[len(content) // 2 if position is None else position] ^= 1
    file.write_bytes(bytes(content))


# commit


def test_what_was_saved_is_loaded(store):
    path = save(store, 10, evaluation=3.5)
    entry, states = store.load_newest()
    assert (entry.path, entry.frames, entry.evaluation) == (path, 10, 3.5)
    assert states["model"]["weight"].tolist() == [10.0] * 3
    assert entry.manifest["owners"] == {"model": "some-dist", "progress": "rlcore"}
    assert entry.manifest["versions"] == {"a": "1"}
    assert (entry.manifest["exact"], entry.manifest["inexact"]) == (False, ["because"])
    assert (store.folder / "latest").read_text().strip() == path.name


def test_a_committed_checkpoint_has_no_leftovers(store):
    path = save(store, 10)
    assert sorted(file.name for file in path.iterdir()) == ["manifest.json", "state.json", "tensors.json", "tensors.pt"]
    assert sorted(file.name for file in store.folder.iterdir()) == [path.name, "latest"]


def test_names_are_never_reused(store):
    assert len({save(store, 10).name for _ in range(5)}) == 5


def test_of_two_checkpoints_at_one_frame_the_later_is_the_newest(store):
    save(store, 10, value=1)
    os.utime(store.entries()[0].path, ns=(1, 1))
    save(store, 10, value=2)
    assert weight(store.load_newest()) == [2.0] * 3


def test_what_is_loaded_does_not_follow_the_live_tensors(store):
    live = torch.ones(3)
    commit(store, {"model": {"weight": live}}, 5)
    live.zero_()
    _, states = store.load_newest()
    assert states["model"]["weight"].tolist() == [1.0] * 3
    states["model"]["weight"].zero_()
    assert store.load_newest()[1]["model"]["weight"].tolist() == [1.0] * 3, "the file is not written through"


# retention


def test_only_the_newest_are_kept(tmp_path):
    store = make(tmp_path, retention=(Latest(2), Best()))
    for count in (10, 20, 30, 40):
        save(store, count)
    assert frames(store) == [30, 40]
    assert not list(tmp_path.glob(".*")), "nothing half-deleted is left"


def test_the_best_is_kept_too(tmp_path):
    store = make(tmp_path, retention=(Latest(1), Best()))
    for count, evaluation in ((10, 1.0), (20, 9.0), (30, 5.0), (40, None), (50, 2.0)):
        save(store, count, evaluation)
    assert frames(store) == [20, 50]
    assert store.best().frames == 20
    save(store, 60, 9.0)
    assert frames(store) == [60], "of two equally good ones the newer"


def test_the_best_is_not_kept_when_that_is_off(tmp_path):
    store = make(tmp_path, retention=(Latest(1),))
    for count, evaluation in ((10, 9.0), (20, 1.0)):
        save(store, count, evaluation)
    assert frames(store) == [20]


def test_the_first_of_every_so_many_frames_are_kept(tmp_path):
    store = make(tmp_path, retention=(Latest(1), EveryFrames(100)))
    for count in range(40, 480, 40):
        save(store, count)
    assert frames(store) == [120, 200, 320, 400, 440]


class Even:
    """Keeps what was saved at an even number of tens of frames."""

    def kept(self, entries):
        return [entry for entry in entries if entry.frames % 20 == 0]


def test_a_rule_of_ones_own_is_asked(tmp_path):
    store = make(tmp_path, retention=(Even(), Latest(1)))
    for count in (10, 20, 30, 40, 50):
        save(store, count)
    assert frames(store) == [20, 40, 50]


def test_best_is_none_when_nothing_was_evaluated(store):
    save(store, 10)
    assert store.best() is None


# damage


def damage_flip(path, name):
    flip(path / name)


def damage_cut(path, name):
    os.truncate(path / name, (path / name).stat().st_size // 2)


def damage_empty(path, name):
    (path / name).write_bytes(b"")


def damage_remove(path, name):
    (path / name).unlink()


def damage_link(path, name):
    copy = path.parent.parent / "elsewhere"
    (path / name).rename(copy)
    (path / name).symlink_to(copy)


def damage_folder(path, name):
    (path / name).unlink()
    (path / name).mkdir()


FILES = ["tensors.pt", "tensors.json", "state.json", "manifest.json"]
DAMAGES = [damage_flip, damage_cut, damage_empty, damage_remove, damage_folder]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_newest_checkpoint_falls_back_aloud(store, caplog, damage, name):
    save(store, 10)
    newest = save(store, 20)
    damage(newest, name)
    with caplog.at_level(logging.WARNING):
        assert weight(store.load_newest()) == [10.0] * 3
    assert newest.name in caplog.text
    assert name in caplog.text


@pytest.mark.parametrize("name", FILES[:3])
def test_a_link_in_place_of_a_file_is_refused(store, name):
    save(store, 10)
    newest = save(store, 20)
    damage_link(newest, name)
    assert weight(store.load_newest()) == [10.0] * 3


def test_every_flipped_byte_of_every_file_is_found(store):
    path = save(store, 10)
    tried = 0
    for name in FILES:
        size = (path / name).stat().st_size
        for position in range(0, size, max(1, size // 97)):
            flip(path / name, position)
            with pytest.raises(StorageError):
                store.load_newest()
            flip(path / name, position)
            tried += 1
    assert tried > 200
    assert weight(store.load_newest()) == [10.0] * 3, "and whole again, it loads"


def test_when_every_checkpoint_is_damaged_the_error_names_what_is_wrong_with_each(store):
    first, second = save(store, 10), save(store, 20)
    flip(first / "tensors.pt")
    flip(second / "manifest.json")
    with pytest.raises(StorageError) as raised:
        store.load_newest()
    assert all(name in str(raised.value) for name in (first.name, second.name, "'tensors.pt' is", "manifest.json"))


def test_an_empty_or_absent_folder_holds_no_checkpoint(store):
    with pytest.raises(StorageError, match=r"no checkpoint in .* can be loaded: there is none"):
        store.load_newest()


def test_files_that_do_not_belong_are_left_alone(store):
    save(store, 10)
    (store.folder / "notes.txt").write_text("mine")
    (store.folder / "my-folder").mkdir()
    (store.entries()[0].path / "extra.txt").write_text("mine")
    save(store, 20)
    assert frames(store) == [10, 20]
    assert (store.folder / "notes.txt").read_text() == "mine"
    assert weight(store.load_newest()) == [20.0] * 3


@pytest.mark.parametrize("content", [None, b"", b"{}", b"[]", b"null", b"\xff", b'{"checksum": "x"}', b'{"format": 1}'])
def test_a_foreign_folder_with_a_name_like_ours_is_left_out_aloud(store, caplog, content):
    save(store, 10)
    foreign = store.folder / "000000000099-abcdef"
    foreign.mkdir()
    if content is not None:
        (foreign / "manifest.json").write_bytes(content)
    with caplog.at_level(logging.WARNING):
        assert weight(store.load_newest()) == [10.0] * 3
    assert foreign.name in caplog.text
    save(store, 20)
    save(store, 30)
    assert foreign.is_dir(), "retention deletes only what it wrote"


def rewrite_manifest(path, **changes):
    manifest = json.loads((path / "manifest.json").read_text()) | changes
    del manifest["checksum"]
    manifest["checksum"] = xxhash.xxh3_128_hexdigest(json.dumps(manifest, sort_keys=True).encode())
    (path / "manifest.json").write_text(json.dumps(manifest))


def test_a_newer_format_is_refused_with_both_numbers(store):
    path = save(store, 10)
    rewrite_manifest(path, format=manifest.FORMAT)
    assert weight(store.load_newest()) == [10.0] * 3, "the manifest was rewritten correctly"
    newer = f"has format {manifest.FORMAT + 1}, this rlcore reads up to {manifest.FORMAT}; update rlcore"
    rewrite_manifest(path, format=manifest.FORMAT + 1)
    with pytest.raises(StorageError, match=newer):
        store.load_newest()


def test_a_file_name_that_leaves_the_folder_is_refused(store, tmp_path):
    path = save(store, 10)
    secret = tmp_path / "secret"
    secret.write_text("x")
    manifest = json.loads((path / "manifest.json").read_text())
    rewrite_manifest(
        path, files=manifest["files"] | {"../../secret": {"size": 1, "xxh3": xxhash.xxh3_128_hexdigest(b"x")}}
    )
    with pytest.raises(StorageError, match=r"'../../secret' is missing or not a plain file"):
        store.load_newest()


def test_another_back_end_says_how_to_read_its_checkpoint(store):
    save(store, 10)
    other = Store(store.folder, TorchCheckpointer(TorchCheckpointer.Config(), None), "dcp")
    with pytest.raises(StorageError, match="written by back end 'torch', the run uses 'dcp'; set CKPT_BACKEND=torch"):
        other.load_newest()


@pytest.mark.parametrize("content", ["", "nonsense", "000000000010-aaaaaa"])
def test_the_pointer_to_the_latest_is_never_trusted(store, content):
    save(store, 10)
    (store.folder / "latest").write_text(content)
    assert weight(store.load_newest()) == [10.0] * 3
    (store.folder / "latest").unlink()
    assert weight(store.load_newest()) == [10.0] * 3


def test_leftovers_of_a_crash_are_no_checkpoints_and_are_collected(store):
    path = save(store, 10)
    partial, trash = store.folder / ".partial-000000000020-aa", store.folder / ".trash-000000000005-bb"
    for leftover in (partial, trash):
        subprocess.run(["cp", "-r", path, leftover], check=True)
    assert frames(store) == [10]
    store.collect_leftovers()
    assert not partial.exists()
    assert not trash.exists()
    assert frames(store) == [10]


# failing saves


class Failing(TorchCheckpointer):
    """Writes a part, then fails."""

    def __init__(self, error):
        super().__init__(TorchCheckpointer.Config(), None)
        self.error = error

    def save(self, folder, tensors):
        (folder / "half").write_bytes(b"x" * 100)
        raise self.error


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EIO, "Input/output error"),
        OSError(errno.EROFS, "Read-only file system"),
        RuntimeError("unexpected pos 704 vs 598"),  # what torch.save says on a full disk
        SystemExit(17),
    ],
    ids=str,
)
def test_a_failed_save_leaves_the_old_ones_untouched(store, error):
    old = [save(store, 10), save(store, 20)]
    before = {file: file.read_bytes() for path in old for file in path.iterdir()}
    failing = Store(store.folder, Failing(error), "torch")
    with pytest.raises(StorageError, match=r"at frame 30 could not be written.*saved before are untouched") as raised:
        save(failing, 30)
    assert str(error) in str(raised.value)
    assert {file: file.read_bytes() for path in old for file in path.iterdir()} == before
    assert sorted(path.name for path in store.folder.iterdir()) == sorted([old[0].name, old[1].name, "latest"])
    assert (store.folder / "latest").read_text().strip() == old[1].name
    assert weight(store.load_newest()) == [20.0] * 3


def test_a_state_that_cannot_be_carried_leaves_nothing_behind(store):
    save(store, 10)
    with pytest.raises(StorageError, match=r"state at 'hook.mine/x' holds a set"):
        commit(store, {"hook.mine": {"x": {1}}}, 20)
    assert len(list(store.folder.iterdir())) == 2
    assert frames(store) == [10]


def test_a_save_goes_through_once_there_is_space_again(store):
    failing = Failing(OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(StorageError):
        save(Store(store.folder, failing, "torch"), 10)
    save(store, 10)
    assert weight(store.load_newest()) == [10.0] * 3


def test_a_failure_to_tidy_up_does_not_undo_a_commit(store, caplog):
    save(store, 10)
    (store.folder / "latest").unlink()
    (store.folder / "latest").mkdir()  # cannot be replaced by a file
    path = save(store, 20)
    assert path.is_dir()
    assert "is saved, but tidying up" in caplog.text
    assert weight(store.load_newest()) == [20.0] * 3


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(folder)]
    if os.name != "posix" or os.geteuid() or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("mounting a small disk takes root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def small_disk_free(folder):
    return shutil.disk_usage(folder).free


def test_a_disk_that_is_really_full_leaves_the_old_ones_untouched(small_disk):
    store = make(small_disk / "checkpoints")
    save(store, 10)
    with pytest.raises(StorageError, match=r"at frame 20 needs 400,000 bytes, .* has [\d,]+ free; .*untouched"):
        commit(store, {"model": {"weight": torch.zeros(100_000)}}, 20)
    (small_disk / "hog").write_bytes(bytes(small_disk_free(small_disk) - 3 * 4096))
    with pytest.raises(StorageError, match="at frame 25 could not be written"):
        commit(store, {"model": {"weight": torch.zeros(1_900)}}, 25)
    (small_disk / "hog").unlink()
    assert weight(store.load_newest()) == [10.0] * 3
    save(store, 30)
    assert weight(store.load_newest()) == [30.0] * 3


# when


def test_the_schedule_saves_at_intervals_and_at_a_new_best_evaluation():
    schedule, progress = SaveSchedule(Every(100), keep_best=True), Progress(1000, updates=1)
    moments = [(50, None), (60, 1.0), (70, 0.5), (80, 2.0), (100, None), (150, 2.0), (200, 3.0), (210, None)]
    due = []
    for progress.frames, evaluation in moments:
        if schedule.due(progress, evaluation):
            due.append(progress.frames)
    assert due == [60, 80, 100, 200]


def test_the_schedule_remembers_the_best_over_a_resume():
    first, second = (SaveSchedule(Every(100), keep_best=True) for _ in range(2))
    first.due(Progress(1000, 10, 1), 5.0)
    second.load_state_dict(first.state_dict())
    assert not second.due(Progress(1000, 20, 2), 4.0)
    assert second.due(Progress(1000, 30, 3), 6.0)


# sizes of what is read


def test_a_state_of_millions_of_values_is_refused_before_it_is_parsed(store):
    path = save(store, 10)
    (path / STATE).write_text(f"[{','.join(['[]'] * 2_100_000)}]")
    forge(path)
    with pytest.raises(StorageError, match=r"state\.json: it holds about 4,200,000 values"):
        store.load_newest()


def test_what_could_not_be_read_again_is_not_saved(store, monkeypatch):
    monkeypatch.setattr(manifest, "MOST_VALUES", 1000)
    snapshot = Snapshot.of({"model": {"numbers": [0] * 1001}}, Progress(1))
    with pytest.raises(StorageError, match="keep long lists of numbers as arrays or tensors"):
        store.save(snapshot, Provenance())
    assert store.is_empty()
