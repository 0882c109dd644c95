"""What a run folder names stays inside of it, or is refused."""

from __future__ import annotations

import os

import pytest

from rlcore.errors import StorageError
from rlcore.files.plain_files import inside, plain_file


@pytest.mark.parametrize("name", ["a", "a/b.png", "./a", "images/deep/er/0001.png", "..a/b", "a b", "Größe"])
def test_a_name_inside_becomes_its_place_whether_it_is_there_or_not(tmp_path, name):
    place = inside(tmp_path, name)
    assert place == tmp_path / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("")
    assert inside(tmp_path, name) == place


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../a", "a/../../b", "a/..", "/etc/passwd", "//a", "a\0b", "x" * 5000, 3, None, ["a"]]
)
def test_a_name_that_leaves_or_is_none_is_refused(tmp_path, name):
    with pytest.raises(StorageError):
        inside(tmp_path, name)


@pytest.mark.parametrize("name", ["link", "folder/link", "linked/file", "linked/absent"])
def test_a_link_on_the_way_is_refused_wherever_it_leads(tmp_path, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("")
    (tmp_path / "link").symlink_to("folder/file")
    (tmp_path / "folder" / "link").symlink_to("nowhere")
    (tmp_path / "linked").symlink_to("folder")
    with pytest.raises(StorageError, match="is a link"):
        inside(tmp_path, name)


def test_the_folder_itself_may_be_reached_by_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "way").symlink_to("real")
    assert inside(tmp_path / "way", "a") == tmp_path / "way" / "a"


def test_only_a_plain_file_of_one_name_is_opened(tmp_path):
    (tmp_path / "file").write_text("content")
    with plain_file(tmp_path / "file") as stream:
        assert stream.read() == b"content"
    os.mkfifo(tmp_path / "pipe")
    os.link(tmp_path / "file", tmp_path / "second")
    (tmp_path / "link").symlink_to("file")
    for name in ("pipe", "second", "link"):
        with pytest.raises((StorageError, OSError)), plain_file(tmp_path / name):
            pass
