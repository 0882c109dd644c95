"""One process per run folder: real processes, one of them killed."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading

import pytest

from rlcore import ConfigError, hookimpl
from rlcore.files.lock import LOCK_FILE, Lock, in_use
from rlcore.run_folder import folder as run_folder

HOLD = """
import sys, time
from pathlib import Path
from rlcore.files.lock import Lock
lock = Lock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def hold(tmp_path):
    """Start a process that holds the lock of the folder."""
    processes = []

    def start():
        process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        processes.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_second_process_is_refused_with_host_and_process_of_the_first(hold, tmp_path):
    process = hold()
    with pytest.raises(ConfigError) as raised:
        Lock(tmp_path)
    message = str(raised.value)
    assert f"is in use by process {process.pid} on {socket.gethostname()}" in message
    assert "--set run.name=NAME" in message


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_lock_of_a_dead_process_is_taken_over(hold, tmp_path, number):
    process = hold()
    process.send_signal(number)
    process.wait()
    lock = Lock(tmp_path)
    assert (tmp_path / LOCK_FILE).read_text() == f"{socket.gethostname()} {os.getpid()}\n"
    lock.release()


@pytest.mark.parametrize("killed", ["after it said who it is", "before"])
def test_the_lock_of_a_dead_process_whose_companion_still_has_it_is_taken_over_and_names_this_one(tmp_path, killed):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with (tmp_path / LOCK_FILE).open("w") as companion:
        companion.write("" if killed == "before" else f"{socket.gethostname()} {gone.pid}\n")
        companion.flush()
        fcntl.flock(companion, fcntl.LOCK_EX)
        release = threading.Timer(0.3, companion.close)
        release.start()
        lock = Lock(tmp_path)
        release.join()
    assert (tmp_path / LOCK_FILE).read_text() == f"{socket.gethostname()} {os.getpid()}\n"
    lock.release()


def test_a_lock_that_is_held_and_whose_text_is_damaged_refuses_all_the_same(tmp_path):
    (tmp_path / LOCK_FILE).write_bytes(b"\xff\xfe 1")
    with (tmp_path / LOCK_FILE).open("rb") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(ConfigError, match="is in use by process 1"):
            Lock(tmp_path)


def test_a_released_lock_is_free(hold, tmp_path):
    Lock(tmp_path).release()
    hold()
    with pytest.raises(ConfigError, match="is in use by process"):
        Lock(tmp_path)


def test_a_process_may_look_at_its_own_run(tmp_path):
    first = Lock(tmp_path)
    second = Lock(tmp_path)
    second.release()
    first.release()


def test_a_file_system_without_locks_does_not_stop_a_run(tmp_path, monkeypatch):
    import errno
    import fcntl

    def refuse(*arguments):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    Lock(tmp_path).release()


def test_a_run_in_use_can_be_neither_resumed_nor_changed(hold, cli, write_config, tmp_path):
    path = write_config()
    assert cli("train", path, "--quiet", "--until", "32").code == 0
    folder = tmp_path / "runs" / "tiny"
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file() and file.name != ".lock"}
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "held\n"
        outcome = cli("train", path, "--quiet", "--resume")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert outcome.code == 2
    assert f"is in use by process {process.pid}" in outcome.err
    after = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file() and file.name != ".lock"}
    assert after == before
    assert cli("train", path, "--quiet", "--resume").code == 0


def test_a_finished_run_gives_its_folder_free(build, tmp_path, hold):
    run = build(write=True)
    run.trainer.train()
    folder = tmp_path / run.folder
    process = subprocess.run([sys.executable, "-c", HOLD.replace("600", "0"), str(folder)], capture_output=True)
    assert process.returncode == 0, process.stderr


def test_the_config_of_a_run_is_replaced_as_a_whole(tmp_path, monkeypatch):
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    run_folder.write_config(folder, {"run": {"seed": 1}})

    def fail(*arguments):
        raise OSError("power cut")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="power cut"):
        run_folder.write_config(folder, {"run": {"seed": 2}})
    assert run_folder.read_config(folder) == {"run": {"seed": 1}}


class InterruptsTheShutdown:
    @hookimpl
    def shutdown(self):
        raise KeyboardInterrupt


def test_the_folder_of_a_run_whose_shutdown_was_interrupted_is_free(build):
    run = build([InterruptsTheShutdown()], write=True)
    with pytest.raises(KeyboardInterrupt):
        run.trainer.train()
    assert in_use(run.folder) is False
