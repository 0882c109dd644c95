"""What can be known of a process from outside, of real ones."""

import os
import signal
import subprocess
import sys
import time

import pytest

from rlcore.process import how_it_ended
from rlcore.process.life import exit_of, started, stopped


@pytest.fixture
def process():
    """Return what starts a process that runs some code, and is killed at the end of the test."""
    processes = []

    def start(code):
        processes.append(subprocess.Popen([sys.executable, "-I", "-S", "-c", f"import os, signal, time\n{code}"]))
        return processes[-1]

    yield start
    for each in processes:
        each.kill()
        each.wait()


def until(condition):
    deadline = time.monotonic() + 30.0
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("os._exit(0)", "ended with exit code 0"),
        ("os._exit(7)", "ended with exit code 7"),
        ("os.kill(os.getpid(), signal.SIGTERM)", "was killed by SIGTERM"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "was killed by SIGKILL (perhaps for lack of memory)"),
        ("os.kill(os.getpid(), 40)", "was killed by signal 40"),
    ],
)
def test_how_a_process_ended_is_known_before_and_after_its_parent_has_asked(process, code, words):
    ended = process(code)
    until(lambda: exit_of(ended.pid) is not None)
    assert how_it_ended(exit_of(ended.pid)) == words
    assert not started(ended.pid)
    assert how_it_ended(ended.wait()) == words
    assert exit_of(ended.pid) is None
    assert how_it_ended(None).startswith("ended without a word")


def test_a_process_that_runs_has_no_end_and_shows_whether_it_was_stopped(process):
    running = process("time.sleep(600)")
    assert (exit_of(running.pid), stopped(running.pid)) == (None, False)
    since = started(running.pid)
    os.kill(running.pid, signal.SIGSTOP)
    until(lambda: stopped(running.pid))
    assert started(running.pid) == since != ""
