"""Checkpoints that are written while training goes on: one moment each, one at a time, and no failure unseen."""

from __future__ import annotations

import errno
import signal
import threading

import pytest
import torch
from rlcore_plugin_testing import make_run
from rlcore_plugin_testing.faults.disk import FailingDisk

from rlcore.checkpoints.manifest import read_manifest, scan, verify
from rlcore.errors import NumericalError, StorageError
from rlcore.process.signals import GraceExpired

SECTIONS = {"checkpoint": {"use": "testing:toy", "every": 16, "keep_last": 100, "async": True}}


class Held:
    """A back end that waits, from the second save on, until it is let go; it counts the saves that run at once."""

    def __init__(self, backend):
        self.backend, self.load = backend, backend.load
        self.gate, self.entered = threading.Event(), threading.Event()
        self.calls = self.running = self.most = 0

    def save(self, folder, tensors):
        self.calls += 1
        self.running += 1
        self.most = max(self.most, self.running)
        if self.calls > 1:
            self.entered.set()
            assert self.gate.wait(20)
        self.backend.save(folder, tensors)
        self.running -= 1


class Told:
    """A hook that is told of every checkpoint."""

    def __init__(self):
        self.frames = []

    def checkpoint_saved(self, path, trainer):
        self.frames.append((read_manifest(path)["progress"]["frames"], trainer.progress.frames))


@pytest.fixture
def held(tmp_path):
    """A run whose back end is held, its hook, and the back end."""

    def build(**checkpoint):
        told = Told()
        sections = {"checkpoint": {**SECTIONS["checkpoint"], **checkpoint}}
        run = make_run(folder=tmp_path, sections=sections, hooks=[_hook(told)])
        store = run.trainer.parts.store
        store._backend = Held(store._backend)
        return run.trainer, store._backend, told

    return build


def _hook(told):
    import rlcore

    class Hook:
        @rlcore.hookimpl
        def checkpoint_saved(self, path, trainer):
            told.checkpoint_saved(path, trainer)

    return Hook()


def frames_of(folder):
    return [entry.frames for entry in scan(folder / "toy" / "checkpoints").entries]


def test_b11_training_goes_on_while_a_checkpoint_is_written_and_hooks_hear_of_it_when_it_is_there(held, tmp_path):
    trainer, backend, told = held(every=32)
    for progress in trainer:
        if progress.frames == 48:
            assert backend.entered.wait(20)
            assert frames_of(tmp_path) == [0], "that of frame 32 is being written"
            assert told.frames == [(0, 0)]
            backend.gate.set()
    assert frames_of(tmp_path) == [0, 32, 64]
    assert [saved for saved, _ in told.frames] == [0, 32, 64]
    assert told.frames[1][1] in (48, 64), "at the next boundary, or at the end"
    assert backend.most == 1


def test_b11_one_save_at_a_time(held, tmp_path):
    trainer, backend, _ = held()
    threading.Timer(0.3, backend.gate.set).start()
    trainer.train()
    assert backend.most == 1
    assert backend.calls == 5
    assert frames_of(tmp_path) == [0, 16, 32, 48, 64]


def test_b11_a_run_that_is_left_waits_for_the_save_it_began(held, tmp_path):
    trainer, backend, _ = held()
    loop = iter(trainer)
    assert next(loop).frames == 16
    assert backend.entered.wait(60)
    threading.Timer(0.2, backend.gate.set).start()
    loop.close()
    assert frames_of(tmp_path) == [0, 16]
    assert not list((tmp_path / "toy" / "checkpoints").glob(".partial-*"))


def test_b11_a_signal_that_ends_the_waiting_does_not_let_a_second_save_begin(held, tmp_path):
    """A save at the boundary that follows waits for the one that runs."""
    trainer, backend, _ = held()
    saver, provenance = trainer.saver, trainer.parts.provenance
    saver.save(trainer.snapshot(), provenance)
    saver.begin(trainer.snapshot(), provenance)

    def expire(number, frame):
        raise GraceExpired

    before = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(GraceExpired):
            saver.finished(wait=True)
    finally:
        signal.signal(signal.SIGALRM, before)
    threading.Timer(0.2, backend.gate.set).start()
    saver.save(trainer.snapshot(), provenance)
    assert (backend.calls, backend.most) == (3, 1)
    trainer.metrics.close()


def test_b11_what_is_saved_is_one_moment_however_long_it_takes(tmp_path):
    """Frame by frame the same states as a run that waits for each."""
    found = {}
    for name, in_background in (("waits", False), ("goes-on", True)):
        sections = {"checkpoint": {**SECTIONS["checkpoint"], "async": in_background}}
        make_run(folder=tmp_path / name, sections=sections).trainer.train()
        entries = scan(tmp_path / name / "toy" / "checkpoints").entries
        assert [verify(entry) for entry in entries] == [[]] * 5
        found[name] = {entry.frames: entry.manifest["digest"] for entry in entries}
    assert found["waits"] == found["goes-on"]
    assert len(set(found["waits"].values())) == 5


def test_b10_an_error_of_the_background_ends_the_run_at_the_next_boundary(tmp_path):
    run, frames = make_run(folder=tmp_path, sections=SECTIONS), []
    disk = FailingDisk(tmp_path / "toy" / "checkpoints", errno.ENOSPC, at=1, lasting=True)
    with pytest.raises(StorageError, match=r"at frame 32 could not be written.*No space left on device"):  # noqa: PT012
        for progress in run.trainer:
            frames.append(progress.frames)
            if progress.frames == 16:
                run.trainer.saver._background.result()
                disk.__enter__()
            if progress.frames == 32:
                with pytest.raises(StorageError):
                    run.trainer.saver._background.result()
    disk.__exit__(None, None, None)
    assert frames == [16, 32], "raised before the third was handed over"
    assert frames_of(tmp_path) == [0, 16]


def test_b10_an_error_that_the_config_tolerates_is_counted_and_the_last_checkpoint_is_there(tmp_path, caplog):
    sections = {"checkpoint": {**SECTIONS["checkpoint"], "on_failure": "warn"}}
    run = make_run(folder=tmp_path, sections=sections)
    disk = FailingDisk(tmp_path / "toy" / "checkpoints", errno.ENOSPC, at=1, lasting=True)
    for progress in run.trainer:
        if progress.frames == 16:
            run.trainer.saver._background.result()
            disk.__enter__()
        if progress.frames == 48:
            with pytest.raises(StorageError):
                run.trainer.saver._background.result()
            disk.__exit__(None, None, None)
    assert run.trainer.saver.failed == 2
    assert frames_of(tmp_path) == [0, 16, 64]
    assert "the run goes on ([checkpoint] on_failure = 'warn')" in caplog.text


def test_b10_the_last_checkpoint_stops_the_run_also_where_errors_are_tolerated(tmp_path):
    sections = {"checkpoint": {**SECTIONS["checkpoint"], "on_failure": "warn"}}
    run = make_run(folder=tmp_path, sections=sections)
    disk = FailingDisk(tmp_path / "toy" / "checkpoints", errno.ENOSPC, at=1, lasting=True)
    with pytest.raises(StorageError, match="at frame 64 could not be written"):  # noqa: PT012
        for progress in run.trainer:
            if progress.frames == 48:
                run.trainer.saver._background.result()
                disk.__enter__()
    disk.__exit__(None, None, None)
    assert frames_of(tmp_path) == [0, 16, 32, 48]


def test_b17_weights_that_are_not_finite_in_the_background_are_not_saved_and_end_the_run(tmp_path):
    run = make_run(folder=tmp_path, sections=SECTIONS)
    store = run.trainer.parts.store
    save, snapshots = store.save, []

    def spoilt(snapshot, provenance):
        snapshots.append(snapshot)
        return save(snapshot, provenance)

    store.save = spoilt
    run.trainer.saver.save(run.trainer.snapshot(), run.trainer.parts.provenance)
    with torch.no_grad():
        next(iter(run.trainer.model.parameters())).fill_(float("nan"))
    run.trainer.saver.begin(run.trainer.snapshot(), run.trainer.parts.provenance)
    with pytest.raises(NumericalError, match="not finite at frame 0"):
        run.trainer.saver.finished(wait=True)
    assert len(snapshots) == 1
    run.trainer.metrics.close()


def test_the_memory_of_a_copy_is_used_again(tmp_path):
    run = make_run(folder=tmp_path, sections=SECTIONS)
    saver, provenance = run.trainer.saver, run.trainer.parts.provenance
    places = []
    for _ in range(2):
        saver.begin(run.trainer.snapshot(), provenance)
        places.append({name: tensor.data_ptr() for name, tensor in saver._copy.items() if tensor.numel()})
        assert saver.finished(wait=True) is not None
    assert places[0] == places[1]
    assert places[0]
    run.trainer.metrics.close()
