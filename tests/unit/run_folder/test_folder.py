"""The folder of a run and its status."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rlcore import ConfigError
from rlcore.errors import StorageError
from rlcore.run_folder import folder as run_folder
from rlcore.run_folder import status as run_status


def test_a_run_folder_is_made_once(tmp_path):
    folder = tmp_path / "a" / "b"
    run_folder.make(folder)
    assert list(folder.iterdir()) == [], "the probe is gone"
    with pytest.raises(ConfigError, match="exists already; continue it with --resume"):
        run_folder.make(folder)


def test_a_run_folder_below_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"cannot be made or written to: .*--set run.folder=PATH"):
        run_folder.make(tmp_path / "file" / "run")


def test_the_status_is_replaced_as_a_whole(tmp_path):
    status = run_status.Status(tmp_path)
    assert run_status.read_status(tmp_path) == {}
    status.write("running", 5)
    status.write("done", 10, "reason", Path("x/checkpoint-1"), exact=True, losses={"skipped": 2})
    found = run_status.read_status(tmp_path)
    assert found | {"time": ""} == {
        "state": "done",
        "reason": "reason",
        "frames": 10,
        "checkpoint": "checkpoint-1",
        "pid": os.getpid(),
        "time": "",
        "exact": True,
        "losses": {"skipped": 2},
        "evaluation": None,
    }
    assert [file.name for file in tmp_path.iterdir()] == ["status.json"]


def test_a_status_that_cannot_be_written_is_an_error_of_storage(tmp_path):
    with pytest.raises(StorageError, match=r"status.json cannot be written"):
        run_status.Status(tmp_path / "absent").write("running", 0)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff"])
def test_a_damaged_status_reads_as_none(tmp_path, content):
    (tmp_path / "status.json").write_bytes(content)
    assert run_status.read_status(tmp_path) == {}
