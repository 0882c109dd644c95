"""Rows E: logs that were damaged between a kill and the resume, and logs that a full disk or a power cut meets."""

from __future__ import annotations

import csv
import errno
import os
import shutil

import pytest
from rlcore_plugin_csv.logger import CSVLogger
from rlcore_plugin_tensorboard.logger import TensorboardLogger
from rlcore_plugin_testing import make_run
from rlcore_plugin_testing.faults.disk import FailingDisk

from rlcore import hookimpl
from rlcore.core_hooks.status import StatusHook
from rlcore.loggers.writer import LogWriter
from rlcore.run_folder.status import Status, read_status

LOGGERS = {"logger": [{"use": "csv"}]}
DAMAGES = {
    "emptied": lambda content: b"",
    "cut within a line": lambda content: content[: len(content) // 2 + 1],
    "cut by a line": lambda content: content[: content[:-1].rindex(b"\n") + 1],
    "a flipped bit": lambda content: content[:-3] + bytes([content[-3] ^ 1]) + content[-2:],
    "no utf-8": lambda content: content[:-3] + b"\xff" + content[-2:],
    "no csv": lambda content: b"\0" * len(content),
}


@pytest.fixture(scope="module")
def halfway(tmp_path_factory):
    """The folder around a run that was stopped in the middle."""
    folder = tmp_path_factory.mktemp("halfway")
    run = make_run(folder=folder, sections=LOGGERS)
    run.trainer.stop_at = 32
    run.trainer.train()
    return folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a run without a stop."""
    folder = tmp_path_factory.mktemp("whole")
    make_run(folder=folder, sections=LOGGERS).trainer.train()
    return folder / "toy"


@pytest.fixture
def stopped(halfway, tmp_path):
    shutil.copytree(halfway / "toy", tmp_path / "toy")
    return tmp_path / "toy"


def go_on(folder, *hooks):
    run = make_run(folder=folder.parent, sections=LOGGERS, resume=True, hooks=hooks)
    run.trainer.train()
    return run


def steps_of(file):
    with file.open(newline="", errors="replace") as stream:
        return {int(row["frames"]) for row in csv.DictReader(stream) if (row["frames"] or "").isdigit()}


def digests(run):
    manifest = run.trainer.parts.store.entries()[-1].manifest
    return {
        name: hash for name, hash in manifest["digests"].items() if name not in run.trainer.parts.provenance.observers
    }


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["metrics.csv", "evaluations.csv"])
def test_e12_a_log_that_was_damaged_before_the_resume_is_said_and_counted_and_the_run_goes_on(
    stopped, whole, caplog, name, damage
):
    file = stopped / name
    content = file.read_bytes()
    file.write_bytes(DAMAGES[damage](content))
    run = go_on(stopped)
    assert name in caplog.text
    assert "the run goes on" in caplog.text
    cause = (
        "changes of evaluations.csv by others" if name == "evaluations.csv" else "changes of the files of logger csv"
    )
    assert [count for found, count in run.trainer.lost().items() if found.startswith(cause)] == [1]
    after = file.read_bytes()
    expected = (whole / name).read_bytes()
    assert after.endswith(expected[len(content) :]), "all that came after stands there"
    if damage != "no csv":
        assert b"\0" not in after, "what is missing is not filled up"
        assert {48, 64} <= steps_of(file) if name == "metrics.csv" else 64 in steps_of(file)
    if damage in ("emptied", "cut by a line"):
        assert after.startswith(expected[:10]), "with its header"


def test_e12_a_log_that_nobody_touched_is_no_difference(stopped, whole, caplog):
    run = go_on(stopped)
    for name in ("metrics.csv", "evaluations.csv"):
        assert (stopped / name).read_bytes() == (whole / name).read_bytes()
    assert not run.trainer.lost()
    assert "the run goes on" not in caplog.text


def test_e12_a_log_that_is_gone_is_said(stopped, caplog):
    (stopped / "metrics.csv").unlink()
    go_on(stopped)
    assert "metrics.csv is gone" in caplog.text
    assert steps_of(stopped / "metrics.csv") == {48, 64}


def test_e12_a_link_in_the_place_of_a_log_is_not_followed(stopped, tmp_path, caplog):
    (stopped / "metrics.csv").rename(tmp_path / "mine")
    before = (tmp_path / "mine").read_bytes()
    (stopped / "metrics.csv").symlink_to(tmp_path / "mine")
    run = go_on(stopped)
    assert "metrics.csv is a link" in caplog.text
    assert (tmp_path / "mine").read_bytes() == before
    assert run.trainer.lost()["failures of logger csv"] == 3


def test_e12_a_log_of_a_checkpoint_without_checksums_goes_on_as_before(tmp_path):
    table = CSVLogger("trial", tmp_path)
    table.log_metrics({"a": 1.0}, 1)
    state = {name: size for name, size in table.state_dict().items() if name != "xxh3"}
    table.log_metrics({"a": 2.0}, 2)
    table.close()
    resumed = CSVLogger("trial", tmp_path)
    resumed.load_state_dict(state)
    resumed.close()
    assert (steps_of(tmp_path / "trial" / "metrics.csv"), resumed.differences) == ({1}, 0)


@pytest.mark.parametrize("place", ["../precious", "ABSOLUTE", "images/link.png", "images/../../precious"])
def test_e12_a_listed_file_outside_of_the_folder_is_left_alone_at_a_resume(tmp_path, caplog, place):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    table = CSVLogger("trial", tmp_path)
    state = table.state_dict()
    table.log_text("note", "later", 1)
    table.close()
    folder = tmp_path / "trial"
    (folder / "images").mkdir()
    (folder / "images" / "link.png").symlink_to(precious)
    with (folder / "media.csv").open("a") as stream:
        stream.write(f"2,note,image,{place.replace('ABSOLUTE', str(precious))}\n")
    resumed = CSVLogger("trial", tmp_path)
    resumed.load_state_dict(state)
    resumed.close()
    assert precious.read_text() == "mine"
    assert "which is left alone" in caplog.text
    assert not list(folder.rglob("*.txt")), "its own files are removed as ever"


def test_e12_a_media_list_that_is_no_utf_8_is_no_obstacle(tmp_path):
    table = CSVLogger("trial", tmp_path)
    state = table.state_dict()
    table.close()
    (tmp_path / "trial").mkdir(exist_ok=True)
    (tmp_path / "trial" / "media.csv").write_bytes(b"frames,key,kind,file\n\xff\xfe,\xff,\xff,\xff\n")
    resumed = CSVLogger("trial", tmp_path)
    resumed.load_state_dict(state)
    resumed.close()


def test_e12_event_files_that_are_shorter_are_said_and_not_filled_up(tmp_path, caplog):
    logger = TensorboardLogger("trial", tmp_path)
    logger.log_metrics({"a": 1.0}, 1)
    state = logger.state_dict()
    logger.close()
    (file,) = (tmp_path / "trial").iterdir()
    os.truncate(file, 10)
    resumed = TensorboardLogger("trial", tmp_path)
    resumed.load_state_dict(state)
    resumed.close()
    assert (file.stat().st_size, resumed.differences) == (10, 1)
    assert "has 10 bytes, and had" in caplog.text


def test_e12_a_run_that_starts_over_sets_the_old_rows_aside(stopped, whole, caplog):
    shutil.rmtree(stopped / "checkpoints")
    go_on(stopped)
    for name in ("metrics.csv", "evaluations.csv"):
        assert (stopped / name).read_bytes() == (whole / name).read_bytes(), "each row stands there once"
        (aside,) = stopped.glob(f"{name}.before-*")
        assert aside.name in caplog.text
    assert caplog.text.count("the run starts over") >= 3


class Operations:
    """Notes what has happened to the files when a checkpoint is there."""

    observer = True

    def __init__(self, disk):
        self.disk, self.names = disk, []

    @hookimpl
    def checkpoint_saved(self, path, trainer):
        self.names.append(
            [performed.split()[0] + " " + os.path.basename(performed.split()[1]) for performed in self.disk.performed]
        )
        self.disk.performed.clear()


def test_e12_logs_and_status_are_synced_with_each_checkpoint_and_not_in_between(tmp_path):
    with FailingDisk(tmp_path, operations={"fsync", "rename"}) as disk:
        noted = Operations(disk)
        run = make_run(folder=tmp_path, sections=LOGGERS, hooks=[noted])
        disk.performed.clear()
        run.trainer.train()
        StatusHook(Status(tmp_path / "toy")).checkpoint_saved(tmp_path, run.trainer)
    assert read_status(tmp_path / "toy")["frames"] == 64
    assert any(done.startswith("fsync") and "/.status.json" in done for done in disk.performed)
    _, *later = noted.names
    assert len(later) == 2
    for names in later:
        assert names.count("fsync metrics.csv") == names.count("fsync evaluations.csv") == 1
        published = next(index for index, name in enumerate(names) if name.startswith("rename"))
        assert names.index("fsync metrics.csv") < published, "before the checkpoint counts"


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_e3_a_disk_that_was_full_for_a_while_costs_the_csv_logger_no_row(tmp_path, whole, caplog, error):
    run = make_run(folder=tmp_path, sections=LOGGERS)
    folder = tmp_path / "toy"
    steps = iter(run.trainer)
    with FailingDisk(folder / "metrics.csv", error, at=1, lasting=True):
        for _ in range(3):
            next(steps)
    for _ in steps:
        pass
    assert (folder / "metrics.csv").read_bytes() == (whole / "metrics.csv").read_bytes()
    (writer,) = run.trainer.metrics.writers
    assert (writer.off, writer.left_out) == (False, 0)
    assert writer.failures > 0
    assert "it is tried again with what comes" in caplog.text
    assert "logger 'csv' writes again" in caplog.text


def test_e3_the_event_files_go_on_after_a_full_disk(tmp_path, caplog):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    class Full(TensorboardLogger):
        full = False

        def _add(self, values, name, step):
            with self._writing():
                if self.full:
                    raise OSError(errno.ENOSPC, "No space left on device")
            super()._add(values, name, step)

    logger = Full("trial", tmp_path)
    writer = LogWriter("tensorboard", logger)
    for step in range(20):
        logger.full = 5 <= step < 15
        writer.write({"a": float(step)}, step)
        writer.drain()
    writer.close()
    assert (writer.failures, writer.off) == (10, False)
    events = EventAccumulator(str(tmp_path / "trial"))
    events.Reload()
    assert len(list((tmp_path / "trial").iterdir())) == 2
    assert "writes again" in caplog.text


def test_e3_a_logger_that_was_off_is_on_again_at_the_next_resume(tmp_path, monkeypatch):
    run = make_run(folder=tmp_path, sections=LOGGERS)
    with monkeypatch.context() as patch:
        patch.setattr(CSVLogger, "log_metrics", lambda *arguments: 1 / 0)
        run.trainer.stop_at = 48
        run.trainer.train()
    assert run.trainer.metrics.writers[0].off
    go_on(tmp_path / "toy")
    assert steps_of(tmp_path / "toy" / "metrics.csv") == {64}
