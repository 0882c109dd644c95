"""Files are replaced as a whole, or not at all."""

import os
import re

import pytest

from rlcore.files.replacement import replace, replacing


@pytest.mark.parametrize("durable", [False, True])
def test_a_file_is_made_and_replaced_in_utf_8_and_nothing_is_left_beside_it(tmp_path, durable):
    for text in ("first", "größer"):
        replace(tmp_path / "note.json", text, durable)
        assert (tmp_path / "note.json").read_bytes() == text.encode()
    assert os.listdir(tmp_path) == ["note.json"]


def test_only_a_durable_replacement_waits_for_the_disk(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr("os.fsync", synced.append)
    replace(tmp_path / "a", "text", durable=False)
    assert not synced
    replace(tmp_path / "a", "text", durable=True)
    assert len(synced) == 1


def test_until_the_end_the_file_is_the_one_before(tmp_path):
    file = tmp_path / "video.mp4"
    file.write_bytes(b"before")
    with replacing(file) as place:
        assert place.parent == tmp_path
        assert re.fullmatch(r"\.video\.mp4-[0-9a-f]{6}", place.name)
        place.write_bytes(b"after")
        assert file.read_bytes() == b"before"
    assert file.read_bytes() == b"after"


@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt()])
def test_an_error_leaves_the_file_before_and_nothing_beside_it(tmp_path, error):
    file = tmp_path / "status.json"
    file.write_text("before")

    def write(place):
        place.write_text("half")
        raise error

    with pytest.raises(type(error)), replacing(file) as place:
        write(place)
    assert file.read_text() == "before"
    assert os.listdir(tmp_path) == ["status.json"]


def test_what_was_never_written_replaces_nothing(tmp_path):
    (tmp_path / "a").write_text("before")
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "a"):
        pass
    assert (tmp_path / "a").read_text() == "before"
