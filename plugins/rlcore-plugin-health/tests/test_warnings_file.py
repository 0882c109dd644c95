"""`health.json` holds what a run was warned of, and a broken one is as good as none."""

import pytest
from rlcore_plugin_health.warnings_file import HEALTH_FILE, read_warnings, write_warnings

WARNED = {"frames": 10, "check": "kl", "message": "far äway"}


def test_what_was_written_is_read(tmp_path):
    write_warnings(tmp_path, [WARNED])
    assert read_warnings(tmp_path) == [WARNED]
    write_warnings(tmp_path, [])
    assert read_warnings(tmp_path) == []


def test_a_run_without_warnings_has_no_file(tmp_path):
    write_warnings(tmp_path, [])
    assert list(tmp_path.iterdir()) == []
    assert read_warnings(tmp_path) == []


@pytest.mark.parametrize("text", ["", "{}", "7", "[" * 100_000, '[7, {"frames": true, "check": "a", "message": "b"}]'])
def test_what_is_no_list_of_warnings_is_left_out(text, tmp_path):
    (tmp_path / HEALTH_FILE).write_text(text)
    assert read_warnings(tmp_path) == []
