"""What is said of a run whose process failed is what that process said, and not one before it."""

from __future__ import annotations

import json
import os
import sys
import time

import pytest
from rlcore_plugin_reports.seeds.child import Child
from rlcore_plugin_reports.seeds.plan import Seed


@pytest.fixture
def fail(tmp_path, monkeypatch):
    """Run a program in the place of rlcore in a run folder that an earlier process failed in."""
    (tmp_path / "output.log").write_text("error: an old story\n")

    def run(program):
        (tmp_path / "program.py").write_text(f"import json, os, sys\nfolder = {str(tmp_path)!r}\n{program}")
        monkeypatch.setattr(
            "rlcore.process.companion.rlcore_command", lambda: [sys.executable, str(tmp_path / "program.py")]
        )
        child = Child(Seed(1, tmp_path, goes_on=True), list, dict(os.environ))
        child.start()
        end = time.monotonic() + 60
        while child.running:
            assert time.monotonic() < end
            time.sleep(0.02)
            child.look()
        return child

    return run


def test_an_error_of_its_own_is_told(fail):
    assert fail("print('error: no such key'); print('bye'); sys.exit(2)").last_line() == "error: no such key"


def test_what_its_status_says_is_told_where_it_printed_a_traceback(fail):
    status = {"state": "failed-resumable", "reason": "RuntimeError: two", "frames": 0}
    text = f"json.dump({status!r} | {{'pid': os.getpid()}}, open(folder + '/status.json', 'w'))"
    assert fail(f"{text}\nprint('while logging'); sys.exit(7)").last_line() == "RuntimeError: two"


def test_the_status_of_an_earlier_process_is_not_told(fail, tmp_path):
    (tmp_path / "status.json").write_text(json.dumps({"state": "failed", "reason": "old", "frames": 0, "pid": 1}))
    assert fail("print('no room'); sys.exit(7)").last_line() == "no room"
    silent = fail("sys.exit(7)")
    assert (silent.last_line(), silent.how_it_ended()) == ("", "ended with exit code 7")


def test_a_signal_without_a_name_is_told_by_its_number(fail):
    assert fail("os.kill(os.getpid(), 40)").how_it_ended() == "was killed by signal 40"
