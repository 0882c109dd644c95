"""Log files are read by whole lines and cut back, and what is lost of them is said."""

import io
import os
from itertools import islice

import pytest

from rlcore.errors import StorageError
from rlcore.files import log_files
from rlcore.files.growing import GrowingFile
from rlcore.files.log_files import cut_back, whole_lines
from rlcore.files.table import Table


def test_a_line_that_is_cut_off_is_left_out(tmp_path):
    file = tmp_path / "log"
    file.write_bytes(b"one\ntwo\nthr")
    assert list(whole_lines(file)) == [b"one\n", b"two\n"]
    assert list(whole_lines(file, 4)) == [b"two\n"]
    assert list(whole_lines(file, 8)) == []
    assert list(whole_lines(tmp_path / "absent")) == []


def test_the_rest_of_a_line_that_is_written_meanwhile_is_no_line(tmp_path, monkeypatch):
    file = tmp_path / "log"
    file.write_bytes(b"one\ntw")

    class Growing(io.BytesIO):
        def readline(self, size=-1):
            line = super().readline(size)
            if line == b"tw":  # another process writes the rest now
                end = self.tell()
                self.write(b"o\nthree\n")
                self.seek(end)
            return line

        __next__ = readline

    monkeypatch.setattr(log_files, "open_log", lambda path: Growing(path.read_bytes()))
    assert list(islice(whole_lines(file), 3)) == [b"one\n"]


def test_a_link_is_not_read(tmp_path):
    (tmp_path / "elsewhere").write_bytes(b"secret\n")
    (tmp_path / "log").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="is a link"):
        list(whole_lines(tmp_path / "log"))


def test_a_file_is_cut_back_to_its_size_and_never_made_longer(tmp_path):
    file = tmp_path / "events"
    file.write_bytes(b"0123456789")
    assert cut_back(file, 4) == ""
    assert file.read_bytes() == b"0123"
    assert cut_back(file, 7) == f"{file} has 4 bytes, and had 7 at the checkpoint; the rest of them is lost"
    assert file.read_bytes() == b"0123"


def test_a_file_that_is_gone_is_said_unless_it_was_empty(tmp_path):
    file = tmp_path / "events"
    assert cut_back(file, 0) == ""
    assert cut_back(file, 7) == f"{file} is gone; 7 bytes were written before the checkpoint"
    assert not os.path.lexists(file)


def test_a_growing_file_and_a_file_of_others_lose_alike(tmp_path):
    file = tmp_path / "log"
    file.write_bytes(b"one\n")
    assert GrowingFile(file).go_back({"size": 9}) == cut_back(file, 9)
    file.unlink()
    assert GrowingFile(file).go_back({"size": 9}) == cut_back(file, 9)


def test_the_rows_of_a_table_after_a_place_come_back_without_the_header(tmp_path):
    table = Table(tmp_path / "a.csv", ("step", "text"))
    table.append([])
    assert not os.path.lexists(tmp_path / "a.csv")
    table.append([(1, "one")])
    size = table.file.size
    table.append([(2, "two\nlines"), (3, "größer")])
    table.file.flush()
    assert table.rows_after(0) == [["1", "one"], ["2", "two\nlines"], ["3", "größer"]]
    assert table.rows_after(size) == [["2", "two\nlines"], ["3", "größer"]]
    assert (tmp_path / "a.csv").read_bytes().startswith(b"step,text\n1,one\n")
