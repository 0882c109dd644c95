"""What a process tells its companion, and what that does about it."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from rlcore.files.lock import LOCK_FILE
from rlcore.process.companion_program import Companion, Words

PROGRAM = """
import os, subprocess, sys, time
from rlcore.process import companion
sleepers = [subprocess.Popen(["sleep", "60"]) for _ in range(3)]
for sleeper in sleepers:
    companion.end_with_this(sleeper.pid)
companion.forget(sleepers[1].pid)
print(*(sleeper.pid for sleeper in sleepers), companion.running()._process.pid, flush=True)
if sys.argv[1] == "forget":
    sys.stdin.readline()
companion.running().close()
"""


@pytest.fixture
def words():
    return Words(-1)


def test_what_was_told_is_read(words):
    assert (words.moves, words.paused, words.deadline, words.workers) == (0, False, math.inf, {})
    words.moves, words.paused, words.deadline = 5, True, 12.5
    assert (words.moves, words.paused, words.deadline) == (5, True, 12.5)


def test_there_is_room_for_many_processes_and_for_others_when_they_have_ended(words):
    kept = [pid for pid in range(1, 2000) if words.keep(pid, signal.SIGKILL)]
    assert len(kept) > 1000
    assert not words.keep(5000, signal.SIGKILL)
    words.forget(7)
    assert words.keep(5000, signal.SIGTERM)
    assert words.workers[5000] == signal.SIGTERM
    assert 7 not in words.workers


def ends(pid):
    """Return whether a process is gone within a few seconds."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            with open(f"/proc/{pid}/stat") as stream:
                if stream.read().rpartition(")")[2].split()[0] in "ZX":
                    return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("killed", [True, False], ids=["killed", "closed"])
def test_processes_end_with_one_that_is_killed_but_for_those_that_were_forgotten(killed):
    program = [sys.executable, "-c", PROGRAM, "forget" if killed else "close"]
    process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    *sleepers, companion = map(int, process.stdout.readline().split())
    try:
        if killed:
            process.kill()
        process.wait(60)
        assert ends(companion)
        for pid in sleepers[::2] if killed else ():
            assert ends(pid)
        for pid in sleepers[1:2] if killed else sleepers:
            os.kill(pid, 0)
    finally:
        for pid in sleepers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.communicate()


def test_while_it_corrects_the_status_the_lock_names_the_process_that_ended(tmp_path):
    """A resume waits for the lock of a process that has ended, and is refused by one that runs."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    (tmp_path / "status.json").write_text(json.dumps({"pid": ended.pid, "state": "running"}))
    companion = Companion(ended.pid, -1, str(tmp_path), 0, None, 0)
    companion.run()
    assert json.loads((tmp_path / "status.json").read_text())["state"] == "failed"
    assert (tmp_path / LOCK_FILE).read_text() == f"{socket.gethostname()} {ended.pid}\n"
