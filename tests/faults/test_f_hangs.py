"""Rows of A, D and F in which the training process cannot help itself, or does not end: the companion and the end."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rlcore.files.lock import Lock
from rlcore.run_folder.status import Status, read_status

BAD_ENV = Path(__file__).with_name("bad_env.py")
RUN = Path("runs/tiny")
FOLDERS = {"run folder": "remove_the_folder", "files": "use_up_the_files"}


@pytest.fixture
def bad(write_config, workdir):
    """Write the config of a run whose env does one bad thing."""
    shutil.copy(BAD_ENV, workdir)

    def write(how, **sections):
        env = {"use": "gymnasium", "id": "Bad-v0", "kwargs": {"how": how}}
        run = {"hang_after": 3} | sections.pop("run", {})
        return write_config(plugins={"files": ["bad_env.py"]}, env=env, run=run, **sections)

    return write


@pytest.fixture
def train_forked(forked_cli):
    """Train in a process that is forked, and says all it has to say before its end."""
    return lambda config, *arguments: forked_cli("train", config, "--quiet", "--grace", "1", *arguments, seconds=60)


def command(config, *arguments):
    return [sys.executable, "-m", "rlcore", "train", str(config), "--quiet", "--grace", "1", *arguments]


def train(config, *arguments, seconds=60):
    """Train in a process of its own; its output is a pipe, whose end comes when all who have it are gone."""
    return subprocess.run(command(config, *arguments), capture_output=True, text=True, timeout=seconds)


def on_disk():
    """Return what the status file says, whether or not its process lives."""
    return json.loads((RUN / "status.json").read_text())


def wait_for(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.02)


def gone(pid):
    """Return whether a process has ended; nobody may ask for its exit code here, so a dead one may still be listed."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def test_f3_an_env_that_keeps_the_gil_is_ended_from_outside(bad):
    done = train(bad("hold_the_gil"))  # whose companion speaks after it, into the same pipe
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert "as if one held the GIL; the main thread was in File" in done.stderr
    assert on_disk()["state"] == "failed-resumable"
    assert "bad_env.py" in on_disk()["reason"]
    assert "in hold_the_gil" in (RUN / "stacks.txt").read_text()


@pytest.mark.slow
def test_f3_a_call_that_the_search_for_its_place_wakes_is_not_ended(train_forked, bad):
    done = train_forked(bad("hold_the_gil_until_a_signal"))
    assert done.code == 0, done.err
    assert on_disk()["state"] == "done"


@pytest.mark.parametrize("how", ["end_without_a_word", pytest.param("kill", marks=pytest.mark.slow)])
def test_a1_d10_the_status_of_a_process_that_could_not_say_its_end_is_the_truth(bad, how):
    done = train(bad(how))  # whose companion speaks after it, into the same pipe
    assert done.returncode == (0 if how == "end_without_a_word" else -signal.SIGKILL)
    # whoever started it may have asked for its exit code before the companion looks
    ended = "ended with exit code 0" if how == "end_without_a_word" else "was killed by SIGKILL"
    assert re.search(rf"in the middle of its run, process \d+ ({ended}|ended without a word)", done.stderr)
    assert on_disk()["state"] == "failed-resumable"
    assert on_disk()["frames"] == 32


def test_a1_a14_nobody_else_may_be_there_and_the_status_is_still_the_truth(tmp_path):
    folder = tmp_path / "run"
    (folder / "checkpoints").mkdir(parents=True)
    Status(folder).write("running", 5)
    lock = Lock(folder)
    assert read_status(folder)["state"] == "running", "a process has the folder"
    lock.release()
    assert read_status(folder)["state"] == "failed"
    (folder / "checkpoints" / "000000000005-abcdef").mkdir()
    dead = read_status(folder)
    assert dead["state"] == "failed-resumable"
    assert "ended without a word" in dead["reason"]


def test_a1_a_run_whose_process_is_gone_is_not_listed_as_running(cli, write_config):
    assert cli("train", write_config(), "--quiet").code == 0
    (RUN / "status.json").write_text(json.dumps(on_disk() | {"state": "running"}))
    assert "failed-resumable" in cli("runs", "runs").out


@pytest.mark.parametrize("what", FOLDERS)
def test_f3_a_hang_is_ended_without_a_folder_and_without_files(train_forked, bad, what):
    done = train_forked(bad(FOLDERS[what]))
    assert done.code == 3, done.err
    assert "in sleep" in done.err
    assert "the stacks are above" in done.err
    assert "most recent call first" in done.err


@pytest.mark.parametrize(
    ("how", "named"),
    [
        pytest.param("leave_a_thread", "thread 'forgotten'", marks=pytest.mark.slow),
        pytest.param("leave_a_handler", "a handler of atexit in forgotten_handler", marks=pytest.mark.slow),
        ("leave_a_child", "(forgotten child)"),
    ],
)
def test_d12_what_an_env_left_running_is_waited_for_named_and_left(bad, how, named):
    began = time.monotonic()
    done = train(bad(how))
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began < 40
    waited, left = [line for line in done.stderr.splitlines() if named in line]
    assert waited.startswith("the command is over and waits up to 1 s for ")
    assert left.startswith("the process ends without ")
    assert on_disk()["state"] == "done"


def test_d12_the_exit_code_stays_when_something_is_left(bad):
    hook = [{"use": "testing:faulty", "fault": "raise", "from_frame": 64}]
    done = train(bad("leave_a_thread", hook=hook))
    assert done.returncode == 7, done.stderr
    assert "the process ends without thread 'forgotten'" in done.stderr
    assert on_disk()["state"] == "failed-resumable"


def test_d12_a_process_that_an_env_forked_ends_with_the_run(bad):
    done = train(bad("fork_a_sleeper"))
    assert done.returncode == 0, done.stderr
    wait_for(lambda: gone(int(done.stdout.split()[-1])), 5)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["fork_into_the_loop", "fork_and_quit"])
def test_f14_a_forked_process_that_comes_back_into_the_loop_ends_and_changes_nothing(train_forked, bad, how):
    logger = [{"use": "csv"}]
    assert train_forked(bad("none", logger=logger), "--set", "run.name=whole").code == 0
    done = train(bad(how, logger=logger))
    assert done.returncode == 0, done.stderr
    assert "came back into the training loop; it ends here" in done.stderr
    rows = [Path("runs", name, "metrics.csv").read_text().splitlines() for name in ("whole", "tiny")]
    frames, forked = ([row.split(",")[0] for row in run] for run in rows)
    assert frames == forked
    assert on_disk()["state"] == "done"


@pytest.mark.slow
def test_f14_a_process_of_multiprocessing_may_count_what_it_does(bad):
    done = train(bad("start_a_child_that_beats"))
    assert done.returncode == 0, done.stderr
    assert "child ended with 0" in done.stdout, done.stderr


def test_a9_a_process_that_stops_itself_says_so_and_can_be_continued(bad):
    process = subprocess.Popen(
        command(bad("stop_the_group")), stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        wait_for(lambda: RUN.joinpath("status.json").exists() and "kill -CONT" in on_disk()["reason"], 60)
        assert on_disk()["state"] == "running"
        os.killpg(process.pid, signal.SIGCONT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    assert f"it goes on after: kill -CONT {process.pid}" in errors
    assert on_disk()["state"] == "done"
