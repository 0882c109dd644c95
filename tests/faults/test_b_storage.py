"""Checkpoints on a disk that loses power, flips bits or fails: nothing acknowledged is lost, nothing wrong loads.

Real stores on real files, for every back end where that makes a difference; the others use the toy back end, whose
checkpoints have few and small files.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import shutil
import subprocess
import sys
import tomllib

import numpy as np
import pytest
import tomli_w
import torch
from rlcore_plugin_dcp.checkpointer import DcpCheckpointer
from rlcore_plugin_testing import difference, make_config, make_run
from rlcore_plugin_testing.faults.bits import cut_files, flipped_bits, forge, kept, rearranged
from rlcore_plugin_testing.faults.crash_states import CrashRecorder
from rlcore_plugin_testing.faults.disk import ERRORS, FailingDisk
from rlcore_plugin_testing.toy_parts import ToyCheckpointer
from rlcore_plugin_torch.checkpointer import TorchCheckpointer
from rlcore_plugin_torchsnapshot.checkpointer import TorchsnapshotCheckpointer

from rlcore.checkpoints.manifest import FORMAT, read_manifest, scan, verify
from rlcore.checkpoints.provenance import Provenance
from rlcore.checkpoints.retention import Best, Latest
from rlcore.checkpoints.store import Store
from rlcore.errors import ConfigError, NumericalError, StorageError
from rlcore.run.asked import ResumeOptions
from rlcore.run.build import build
from rlcore.state.snapshot import Snapshot
from rlcore.types.progress import Progress

BACKENDS = {
    "toy": ToyCheckpointer,
    "torch": TorchCheckpointer,
    "torchsnapshot": TorchsnapshotCheckpointer,
    "dcp": DcpCheckpointer,
}


def make(folder, backend="toy", **settings):
    kind = BACKENDS[backend]
    return Store(folder, kind(kind.Config(), None), backend, **settings)


make_store = make


def states(value):
    return {"model": {"weight": torch.full((3,), float(value))}, "count": {"value": value, "note": "ü"}}


def save(store, frames, evaluation=None):
    provenance = Provenance(owners={"model": "some-dist"}, versions={"some-dist": "1.0"})
    return store.save(Snapshot.of(states(frames), Progress(1000, frames), evaluation), provenance)


def loaded(store):
    """Return the frame of what loads, having seen that it is exactly what was saved there."""
    entry, found = store.load_newest()
    assert difference(found, states(entry.frames)) is None
    return entry.frames


def read(path, backend="toy"):
    """Verify and load one checkpoint, as asked for by name."""
    (entry,) = [entry for entry in scan(path.parent).entries if entry.path == path] or [None]
    if entry is None:
        read_manifest(path)
    return make(path.parent, backend).load(entry)


@pytest.fixture
def two(tmp_path):
    """A store of two checkpoints and the folder of the newer."""
    store = make(tmp_path / "checkpoints")
    save(store, 10)
    return store, save(store, 20)


# B1, B2, B3: damage to files


@pytest.mark.parametrize("name", ["tensors.bin", "index.json", "state.json", "manifest.json"])
def test_b1_a_file_cut_anywhere_is_never_loaded_and_is_named(two, name):
    _, newest = two
    cuts = 0
    for damage in cut_files(newest / name):
        with pytest.raises(StorageError, match=name) as raised:
            read(newest)
        assert str(newest) in str(raised.value), damage
        cuts += 1
    assert cuts == (newest / name).stat().st_size
    read(newest)


@pytest.mark.parametrize("backend", [name for name in BACKENDS if name != "toy"])
def test_b1_no_back_end_loads_a_file_that_is_cut(tmp_path, backend):
    path = save(make(tmp_path, backend), 10)
    for file in sorted(path.iterdir()):
        for _ in cut_files(file, most=50):
            with pytest.raises(StorageError, match=re.escape(file.name)):
                read(path, backend)
    read(path, backend)


def check_every_bit(path, backend, most=None):
    flips = 0
    for file in sorted(path.iterdir()):
        for damage in flipped_bits(file, most):
            try:
                found = read(path, backend)
            except StorageError as error:
                assert file.name in str(error), damage  # noqa: PT017
            else:
                pytest.fail(f"{damage} was not noticed; loaded {found}")
            flips += 1
    read(path, backend)
    return flips


@pytest.mark.parametrize("backend", BACKENDS)
def test_b2_a_flipped_bit_is_found(tmp_path, backend):
    """A sample of the bits; all of them in the slow suite."""
    path = save(make(tmp_path, backend), 10, evaluation=1e-05)  # 1E-05 would be the same number
    assert check_every_bit(path, backend, most=500) > 1400


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_b2_every_flipped_bit_of_every_file_is_found(tmp_path, backend):
    path = save(make(tmp_path, backend), 10, evaluation=1e-05)
    assert check_every_bit(path, backend) == 8 * sum(file.stat().st_size for file in path.iterdir())


def test_b2_a_number_spelt_in_another_way_is_found(tmp_path):
    """Bits that JSON does not look at are bits of the file all the same."""
    path = save(make(tmp_path), 10, evaluation=1e-05)
    text = (path / "manifest.json").read_text()
    for other in (text.replace("1e-05", "1E-05"), text + " ", text.replace(": ", ":"), text[:-1] + ', "a": 1}'):
        assert other != text
        (path / "manifest.json").write_text(other)
        with pytest.raises(StorageError, match=r"manifest.json"):
            read(path)
    (path / "manifest.json").write_text(text)
    read(path)


def test_b2_a_resume_falls_back_aloud(two, caplog):
    store, newest = two
    for _ in flipped_bits(newest / "tensors.bin", most=3):
        caplog.clear()
        assert loaded(store) == 10
        assert f"checkpoint {newest} is damaged: 'tensors.bin'" in caplog.text
        assert "falling back to the checkpoint before" in caplog.text
    assert loaded(store) == 20


def test_b3_missing_renamed_swapped_and_replaced_files_are_found(two):
    store, newest = two
    damages = []
    for damage in rearranged(newest):
        damages.append(damage)
        with pytest.raises(StorageError):
            read(newest)
        assert loaded(store) == 10, damage
    assert len(damages) > 50
    assert loaded(store) == 20


def test_b3_files_of_another_checkpoint_are_found(two):
    store, newest = two
    older = store.entries()[0].path
    for name in ("tensors.bin", "state.json", "manifest.json"):
        with kept(newest):
            shutil.copyfile(older / name, newest / name)
            assert loaded(store) == 10
    with kept(newest), kept(older):
        newest.rename(store.folder / ".aside")
        older.rename(newest)
        (store.folder / ".aside").rename(older)
        with pytest.raises(StorageError, match=f"is a copy or was renamed: it is '{older.name}'"):
            store.load_newest()


def test_b3_an_extra_file_is_reported_and_ignored(two, caplog):
    store, newest = two
    (newest / "notes.txt").write_text("mine")
    (newest / "more").mkdir()
    assert loaded(store) == 20
    assert f"checkpoint {newest} also holds ['more', 'notes.txt'], which is not its own" in caplog.text


# B4, B9: power cuts


def check_crash_states(recorder, folder, most, backend="toy"):
    """Every state of the disk loads what was acknowledged, or what is newer; leftovers are no checkpoints."""
    logging.disable()
    seen = set()
    try:
        for number, state in enumerate(recorder.states(most)):
            place = folder / "crashed"
            state.write(place)
            try:
                store = make(place, backend)
                if state.acknowledged is None:
                    frames = loaded(store) if scan(place).entries else 0
                else:
                    frames = loaded(store)
                assert frames >= (state.acknowledged or 0), state
                store.collect_leftovers()
                assert not list(place.glob(".*")), state
                assert frames == 0 or loaded(store) == frames, state
            except StorageError as error:
                pytest.fail(f"state {number}: {error}\n{state}")
            seen.add((state.acknowledged, frames))
            shutil.rmtree(place)
    finally:
        logging.disable(logging.NOTSET)
    return seen, number + 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_b4_no_power_cut_loses_an_acknowledged_checkpoint(tmp_path, backend):
    """Three saves; each removes the one before, which must not be gone before the new one is certain."""
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    with CrashRecorder(folder) as recorder:
        for frames in (10, 20, 30):
            save(make(folder, backend, retention=(Latest(1), Best())), frames)
            recorder.acknowledge(frames)
    seen, count = check_crash_states(recorder, tmp_path, 8, backend)
    assert {(None, 0), (None, 10), (10, 10), (10, 20), (20, 20), (20, 30), (30, 30)} <= seen
    assert count > 200


@pytest.mark.slow
@pytest.mark.parametrize("keep_last", [1, 2])
def test_b4_thousands_of_states_of_a_power_cut_load(tmp_path, keep_last):
    """Up to a thousand of each moment, with the best kept too."""
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    with CrashRecorder(folder) as recorder:
        for frames, evaluation in ((10, 5.0), (20, 1.0), (30, 2.0)):
            save(make(folder, retention=(Latest(keep_last), Best())), frames, evaluation)
            recorder.acknowledge(frames)
    _, count = check_crash_states(recorder, tmp_path, most=1_000)
    assert count > 4_000


@pytest.mark.parametrize("skipped", ["manifest.json", "state.json", "index.json", "checkpoints", "partial folder"])
def test_b4_the_proof_fails_for_a_save_that_leaves_out_one_fsync(tmp_path, monkeypatch, skipped):
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    with CrashRecorder(folder) as recorder:
        watched = os.fsync

        def fsync(descriptor):
            name = os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}"))
            if skipped != ("partial folder" if name.startswith(".partial") else name):
                watched(descriptor)

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fsync)
            save(make(folder), 10)
        recorder.acknowledge(10)
    with pytest.raises(pytest.fail.Exception, match="can be loaded"):
        check_crash_states(recorder, tmp_path, most=500)


class Careless(ToyCheckpointer):
    """A back end that leaves it to others to see its files onto the disk."""

    def save(self, folder, tensors):
        super().save(folder, tensors)
        for file in list(folder.iterdir()):
            content = file.read_bytes()
            file.unlink()
            file.write_bytes(content)


def test_b4_a_back_end_that_syncs_nothing_loses_nothing(tmp_path):
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    with CrashRecorder(folder) as recorder:
        save(Store(folder, Careless(Careless.Config(), None), "toy"), 10)
        recorder.acknowledge(10)
    seen, _ = check_crash_states(recorder, tmp_path, most=20)
    assert (10, 10) in seen


def test_b4_the_names_on_the_way_to_a_checkpoint_are_certain_too(tmp_path):
    """Run folders are made with their parents; a power cut must not take the way to what is in them."""
    with CrashRecorder(tmp_path) as recorder:
        save(make(tmp_path / "a" / "b" / "checkpoints"), 10)
        recorder.acknowledge(10)
    acknowledged = [state for state in recorder.states() if state.acknowledged == 10]
    assert acknowledged
    for number, state in enumerate(acknowledged):
        place = tmp_path / f"crashed-{number}"
        state.write(place)
        assert loaded(make(place / "a" / "b" / "checkpoints")) == 10


def test_b9_retention_never_removes_what_was_just_saved(tmp_path, caplog):
    """Also when a checkpoint of a later frame lies there, damaged, from which nothing could go on."""
    store = make(tmp_path, retention=(Latest(1), Best()))
    later = save(store, 100)
    shutil.copytree(later, tmp_path / "aside")
    (later / "tensors.bin").write_bytes(b"")
    save(store, 50)
    assert loaded(store) == 50
    save(store, 60)
    assert [entry.frames for entry in store.entries()] == [60, 100]
    assert loaded(store) == 60


@pytest.mark.parametrize("operation", ["rename", "unlink", "rmdir"])
def test_b9_a_failing_retention_does_not_undo_the_save(two, caplog, operation):
    store = make(two[0].folder, retention=(Latest(1),))
    with FailingDisk(store.folder) as disk:
        save(store, 30)
    removing = [what for what in disk.performed if ".trash-" in what or what.startswith("rename")][1:]
    numbers = [disk.performed.index(what) + 1 for what in removing if what.startswith(operation)]
    assert len(numbers) == {"rename": 2, "unlink": 8, "rmdir": 2}[operation]
    save(store, 40)  # from now on there is one old checkpoint to remove, as there were two above
    for frames, number in enumerate(numbers[: len(numbers) // 2], start=41):
        with FailingDisk(store.folder, errno.EIO, at=number):
            save(store, frames)
        assert loaded(store) == frames
        store.collect_leftovers()
        save(store, frames)
        assert [entry.frames for entry in store.entries()] == [frames]


# B5, B7, B10: disks that fail


# the toy back end at every error; what differs between the others is where they write
FAILURES = [*(("toy", error) for error in ERRORS), *((name, errno.ENOSPC) for name in BACKENDS if name != "toy")]


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize(("backend", "error"), FAILURES, ids=lambda value: errno.errorcode.get(value, value))
def test_b5_a_disk_that_fails_at_any_operation_loses_nothing(tmp_path, backend, error, lasting, caplog):
    def make(folder, **settings):
        return make_store(folder, backend, **settings)

    original = tmp_path / "original"
    save(make(original), 10)
    with FailingDisk(shutil.copytree(original, tmp_path / "rehearsal")) as disk:
        save(make(tmp_path / "rehearsal", retention=(Latest(1), Best())), 20)
    number_of_operations = len(disk.performed)
    assert number_of_operations > 20
    outcomes = set()
    for number in range(1, number_of_operations + 1):
        folder = shutil.copytree(original, tmp_path / str(number))
        caplog.clear()
        try:
            with FailingDisk(folder, error, at=number, lasting=lasting) as disk:
                save(make(folder, retention=(Latest(1), Best())), 20)
        except StorageError as raised:
            outcomes.add("refused")
            message = str(raised)
            assert os.strerror(error) in message, message
            assert "at frame 20 could not be written" in message
            assert "checkpoints saved before are untouched" in message
            # the disk may fail so early that the folder is whole under its final name and cannot be taken back
            assert loaded(make(folder)) in ((10, 20) if lasting else (10,)), disk.performed[number - 1]
        else:
            outcomes.add("saved")
            assert loaded(make(folder)) == 20, disk.performed[number - 1]
        assert disk.failed
        make(folder).collect_leftovers()
        assert not list(folder.glob(".*"))
        save(make(folder, retention=(Latest(1),)), 30)
        assert [entry.frames for entry in make(folder).entries()] == [30]
        assert loaded(make(folder)) == 30
    assert outcomes == {"refused", "saved"}


def test_b5_what_cannot_fit_is_refused_before_anything_is_written(two):
    store, _ = two
    before = sorted(store.folder.iterdir())
    huge = torch.empty(1).expand(2**50)
    with pytest.raises(StorageError, match=r"needs [\d,]+ bytes, .* has [\d,]+ free; checkpoints saved before"):
        store.save(Snapshot({}, {"model/huge": huge}, Progress(100, 30).state_dict()), Provenance())
    assert sorted(store.folder.iterdir()) == before


def test_b6_a_mapped_replay_buffer_that_does_not_fit_is_an_error_before_its_first_row(jobs):
    """Its room is taken as a whole, so no write into it can end the process with a signal later."""
    attempt = jobs.run(jobs.make("mapped", "dqn", buffer={"capacity": 2**50, "storage": "memmap"}))
    assert attempt.code == 5, attempt.output
    assert "no room for a replay buffer" in attempt.output
    assert "Lower [buffer] capacity" in attempt.output


@pytest.mark.parametrize("kind", ["a file", "read-only", "too long"])
def test_b7_a_place_that_cannot_be_written_is_refused_before_the_first_frame(tmp_path, kind):
    folder = tmp_path / "runs"
    folder.mkdir()
    if kind == "a file":
        (folder / "toy").write_text("")
    elif kind == "too long":
        folder = tmp_path / ("x" * 300)
    with FailingDisk(tmp_path, errno.EROFS, at=1 if kind == "read-only" else None, lasting=True):  # noqa: SIM117
        with pytest.raises(ConfigError, match=r"run folder .* (exists already|cannot be made or written to)"):
            make_run(folder=folder)


def test_b7_checkpoints_that_cannot_be_listed_are_not_taken_for_none(two):
    """A run that starts over in a folder it cannot see into would be a loss."""
    store, _ = two
    shutil.rmtree(store.folder)
    assert store.is_empty()
    store.folder.write_text("")
    for look in (store.is_empty, store.load_newest, store.entries):
        with pytest.raises(StorageError, match="cannot be listed"):
            look()
    with pytest.raises(StorageError, match="could not be written"):
        save(store, 30)


def test_b10_a_save_that_fails_ends_the_run_and_what_was_saved_stands(tmp_path):
    """Saves are done in the loop, so the error is seen at once, and nothing points to what is not there."""
    run = make_run(folder=tmp_path)
    checkpoints = tmp_path / "toy" / "checkpoints"
    frames = []
    with pytest.raises(StorageError, match="No space left on device"):  # noqa: PT012
        for progress in run.trainer:
            frames.append(progress.frames)
            if progress.frames == 32:
                disk = FailingDisk(checkpoints, errno.ENOSPC, at=1, lasting=True)
                disk.__enter__()
    disk.__exit__(None, None, None)
    entry, _ = make(checkpoints).load_newest()
    assert (entry.frames, frames) == (32, [16, 32, 48])
    assert (checkpoints / "latest").read_text().strip() == entry.path.name


# B8: two writers

_WRITER = """
import sys, torch
from pathlib import Path
from rlcore.checkpoints.provenance import Provenance
from rlcore.checkpoints.retention import Latest
from rlcore.checkpoints.store import Store
from rlcore.types.progress import Progress
from rlcore.state.snapshot import Snapshot
from rlcore_plugin_testing.toy_parts import ToyCheckpointer
store = Store(Path(sys.argv[1]), ToyCheckpointer(ToyCheckpointer.Config(), None), "toy", (Latest(1000),))
for frames in range(1, 31):
    value = {"model": {"weight": torch.full((500,), float(sys.argv[2]))}}
    store.save(Snapshot.of(value, Progress(1000, frames)), Provenance())
"""


@pytest.mark.slow
def test_b8_two_writers_without_a_lock_do_not_mix_their_files(tmp_path):
    writers = [subprocess.Popen([sys.executable, "-c", _WRITER, str(tmp_path), value]) for value in ("1", "2")]
    assert [writer.wait(120) for writer in writers] == [0, 0]
    store = make(tmp_path)
    entries = store.entries()
    assert len(entries) == 60
    sums = [float(store.load(entry)["model"]["weight"].sum()) for entry in entries]
    assert sorted(sums) == [500.0] * 30 + [1000.0] * 30


def test_b8_names_are_never_reused(tmp_path):
    store = make(tmp_path, retention=(Latest(50), Best()))
    assert len({save(store, 10).name for _ in range(20)}) == 20


def test_b11_a_copied_snapshot_stays_as_it_was(tmp_path):
    weight, array = torch.zeros(5), np.zeros(4)
    live = {"model": {"weight": weight, "view": weight[1:3], "array": array, "list": [1]}}
    snapshot = Snapshot.of(live, Progress(100, 10)).copied()
    weight.fill_(7)
    array.fill(7)
    live["model"]["list"].append(2)
    store = make(tmp_path)
    store.save(snapshot, Provenance())
    expected = {"weight": torch.zeros(5), "view": torch.zeros(2), "array": np.zeros(4), "list": [1]}
    assert difference(store.load_newest()[1], {"model": expected}) is None


# B12 to B16: what a checkpoint meets elsewhere


def test_b12_a_newer_format_is_refused_and_not_passed_over(two):
    """To go on from the one before would throw away what a newer rlcore can read."""
    store, newest = two
    forge(newest, format=FORMAT + 1)
    with pytest.raises(StorageError, match=f"{newest.name} has format {FORMAT + 1}, this rlcore reads up to {FORMAT}"):
        store.load_newest()
    forge(newest, format=FORMAT)
    assert loaded(store) == 20


@pytest.fixture
def saved_run(tmp_path):
    """A finished toy run, and a function that resumes it with a forged manifest."""
    make_run(folder=tmp_path).trainer.train()
    (newest,) = sorted((tmp_path / "toy" / "checkpoints").glob("000000000064-*"))

    def resume(*overrides, options=True, sections=None, **changes):
        if changes:
            forge(newest, **changes)
        config = make_config("run.total_frames=96", *overrides, folder=tmp_path, sections=sections)
        return build(config, resume=options)

    resume.manifest = read_manifest(newest)
    resume.path = newest
    return resume


@pytest.mark.parametrize("what", ["torch", "python", "rlcore"])
def test_b13_another_version_loads_and_is_no_longer_called_exact(saved_run, what, caplog):
    versions, domain = dict(saved_run.manifest["versions"]), dict(saved_run.manifest["domain"])
    assert saved_run.manifest["exact"]
    (versions if what in versions else domain)[what] = "0.0.1"
    run = saved_run(versions=versions, domain=domain)
    reasons = [reason for reason in run.trainer.parts.provenance.inexact if what in reason and "0.0.1" in reason]
    assert reasons
    assert f"exact = false: {reasons[0]}" in caplog.text
    run.trainer.train()
    manifest = scan(saved_run.path.parent).entries[-1].manifest
    assert (manifest["progress"]["frames"], manifest["exact"]) == (96, False)


def test_b14_a_state_of_another_shape_is_refused_by_name(saved_run):
    weights = TorchWeights(saved_run.path)
    weights.reshape()
    with pytest.raises(StorageError, match=r"(?s)the state of model in the checkpoint does not fit.*size mismatch"):
        saved_run()


class TorchWeights:
    """The tensors of a checkpoint of the toy back end, to be changed."""

    def __init__(self, path):
        self.path, self.backend = path, ToyCheckpointer(ToyCheckpointer.Config(), None)

    def reshape(self):
        tensors = self.backend.load(self.path)
        name = next(name for name in tensors if name.startswith("model/"))
        self.backend.save(self.path, tensors | {name: torch.zeros(9, 9)})
        forge(self.path)


def test_b15_a_state_without_an_owner_names_who_wrote_it_and_can_be_dropped(tmp_path):
    hook = [{"use": "testing:toy", "name": "counting"}]
    make_run(folder=tmp_path, sections={"hook": hook}).trainer.train()
    config = tomllib.loads((tmp_path / "toy" / "config.toml").read_text())
    config["hook"] = [entry for entry in config["hook"] if entry["name"] != "counting"]
    (tmp_path / "toy" / "config.toml").write_text(tomli_w.dumps(config))
    changed = make_config("run.total_frames=96", folder=tmp_path)
    owner = r"hook.counting \(written by rlcore-plugin-testing\)"
    with pytest.raises(StorageError, match=rf"state of {owner}.*--drop hook.counting"):
        build(changed, resume=ResumeOptions(accept_changes=True))
    run = build(changed, resume=ResumeOptions(drop=("hook.counting",), accept_changes=True))
    assert "hook.counting: dropped" in map(str, run.report)
    run.trainer.train()
    back = make_config("run.total_frames=128", folder=tmp_path, sections={"hook": hook})
    with pytest.raises(StorageError, match=r"has no state of hook.counting.*--fresh hook.counting"):
        build(back, resume=ResumeOptions(accept_changes=True))
    run = build(back, resume=ResumeOptions(fresh=("hook.counting",), accept_changes=True))
    assert "hook.counting: starts over" in map(str, run.report)


def test_b16_a_checkpoint_of_another_device_loads_and_is_no_longer_called_exact(saved_run):
    run = saved_run(domain={**saved_run.manifest["domain"], "device": "NVIDIA X", "cuda": "12.0"})
    assert any("device is cpu here, NVIDIA X in the checkpoint" in why for why in run.trainer.parts.provenance.inexact)


@pytest.mark.cuda
@pytest.mark.parametrize("backend", BACKENDS)
def test_b16_tensors_of_a_gpu_load_on_the_cpu(tmp_path, backend):
    store = make(tmp_path, backend)
    weight = torch.randn(7, 5, device="cuda")
    store.save(Snapshot.of({"model": {"weight": weight, "view": weight.t()}}, Progress(10, 1)), Provenance())
    _, found = store.load_newest()
    assert difference(found, {"model": {"weight": weight.cpu(), "view": weight.t().cpu()}}) is None


def test_b17_weights_that_are_not_finite_are_not_saved(tmp_path):
    run = make_run(folder=tmp_path)
    checkpoints = tmp_path / "toy" / "checkpoints"
    with pytest.raises(NumericalError, match=r"not finite at frame 48"):  # noqa: PT012
        for progress in run.trainer:
            if progress.frames == 48:
                before = sorted(checkpoints.iterdir())
                with torch.no_grad():
                    next(iter(run.trainer.model.parameters())).fill_(float("nan"))
                run.trainer.save()
    assert sorted(checkpoints.iterdir()) == before
    entry, found = make(checkpoints).load_newest()
    assert entry.frames == 32
    assert all(torch.isfinite(value).all() for value in found["model"].values())


def anything(generator, depth=0):
    """Return a random state."""
    dtypes = [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool, torch.complex64, torch.uint8]

    def tensor():
        shape = [int(size) for size in generator.integers(0, 4, generator.integers(0, 4))]
        made = torch.from_numpy(generator.integers(-9, 9, shape)).to(dtypes[generator.integers(len(dtypes))])
        return made.t() if made.dim() == 2 else made[::2] if made.dim() else made

    leaves = [
        tensor,
        lambda: generator.normal(size=generator.integers(0, 3, 2)),
        lambda: generator.integers(0, 9, 3).astype(np.int16),
        lambda: int(generator.integers(-9, 9)) * 10 ** int(generator.integers(40)),
        lambda: float(generator.choice([0.1, -0.0, 1e-310, float("inf"), float("nan"), 1e300])),
        lambda: ["", "ü", "a/b", "$tensor", "\x00\n"][generator.integers(5)],
        lambda: None,
        lambda: bool(generator.integers(2)),
    ]
    if depth > 3 or generator.random() < 0.5:
        return leaves[generator.integers(len(leaves))]()
    items = [anything(generator, depth + 1) for _ in range(generator.integers(4))]
    keys = [["a", "$tensor", "b/c", 3, (1, "x"), None][number] for number in generator.permutation(6)]
    return [items, tuple(items), dict(zip(keys, items, strict=False))][generator.integers(3)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_b18_any_state_comes_back_to_the_bit(tmp_path, backend):
    store = make(tmp_path, backend, retention=(Latest(1), Best()))
    for seed in range(60):
        generator = np.random.default_rng(seed)
        state = {f"part.{number}": {"x": anything(generator)} for number in range(3)}
        store.save(Snapshot.of(state, Progress(100, seed)), Provenance())
        where = difference(state, store.load_newest()[1])
        assert where is None, f"seed {seed}: {where}"


@pytest.mark.slow
def test_b18_a_hundred_thousand_small_tensors_come_back(tmp_path):
    store = make(tmp_path, "torch")
    state = {"model": {f"layer.{number}": torch.tensor([float(number)]) for number in range(100_000)}}
    store.save(Snapshot.of(state, Progress(100, 1)), Provenance())
    assert difference(state, store.load_newest()[1]) is None


def test_b18_a_state_as_deep_as_can_be_saved_can_be_loaded(tmp_path):
    store, deepest = make(tmp_path), 0
    for depth in (1, 10, 100, 200, 300, 400, 500, 1000, 5000):
        state = value = {}
        for _ in range(depth):
            value["x"] = value = {}
        try:
            store.save(Snapshot.of({"part": state}, Progress(100, depth)), Provenance())
        except (StorageError, RecursionError):
            break
        deepest = depth
        assert store.load_newest()[0].frames == depth
    assert deepest >= 100


def test_b19_the_checkpoint_says_which_back_end_reads_it(two):
    """And one that is whole is not passed over for an older one."""
    store, newest = two
    save(make(store.folder, "torch"), 30)
    with pytest.raises(StorageError, match=r"written by back end 'torch', the run uses 'toy'; set CKPT_BACKEND=torch"):
        store.load_newest()
    assert loaded(make(store.folder, "torch")) == 30
    shutil.rmtree(newest)


def test_b20_an_unknown_back_end_is_refused_at_the_start(tmp_path):
    with pytest.raises(ConfigError, match=r"\[checkpoint\] use:.*'torhc'.*did you mean 'torch'"):
        make_run("checkpoint.use=torhc", folder=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["symbolic link", "hard link", "device"])
@pytest.mark.parametrize("name", ["tensors.bin", "state.json", "manifest.json"])
def test_b21_a_link_or_device_in_a_checkpoint_is_refused(two, tmp_path, name, kind):
    store, newest = two
    elsewhere = tmp_path / "elsewhere"
    (newest / name).rename(elsewhere)
    if kind == "symbolic link":
        (newest / name).symlink_to(elsewhere)
    elif kind == "hard link":
        os.link(elsewhere, newest / name)
    else:
        (newest / name).symlink_to("/dev/zero")
    assert loaded(store) == 10
    (newest / name).unlink()
    elsewhere.rename(newest / name)
    assert loaded(store) == 20


def test_b21_a_link_in_place_of_a_checkpoint_is_refused(two, tmp_path, caplog):
    store, newest = two
    newest.rename(tmp_path / newest.name)
    newest.symlink_to(tmp_path / newest.name)
    assert loaded(store) == 10
    assert "the folder is a link" in caplog.text
    save(make(store.folder, retention=(Latest(1),)), 30)
    assert (tmp_path / newest.name / "state.json").is_file(), "retention removes nothing through a link"


@pytest.mark.parametrize("content", [b"", b"nonsense", b"../../x", b"\xff\x00"])
def test_b23_the_pointer_to_the_latest_is_only_a_convenience(two, content):
    store, _ = two
    (store.folder / "latest").write_bytes(content)
    assert loaded(store) == 20
    (store.folder / "latest").unlink()
    assert loaded(store) == 20
    path = save(store, 30)
    assert (store.folder / "latest").read_text().strip() == path.name


def test_every_checkpoint_of_a_run_verifies(tmp_path):
    make_run("checkpoint.keep_last=10", folder=tmp_path).trainer.train()
    found = scan(tmp_path / "toy" / "checkpoints")
    assert len(found.entries) >= 2
    assert [verify(entry) for entry in found.entries] == [[]] * len(found.entries)
