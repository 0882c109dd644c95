"""Ctrl-C and termination, with real processes and real signals."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

FAULTS = str(Path(__file__).with_name("faults.py"))
RUN = Path("runs/tiny")


@pytest.fixture
def start(write_config):
    """Start a training process, and wait until it saved a checkpoint."""
    processes = []

    def begin(path):
        command = [sys.executable, "-m", "rlcore.cli", "train", str(path), "--quiet"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        processes.append(process)
        deadline = time.monotonic() + 120
        while not list(RUN.glob("checkpoints/[0-9]*/manifest.json")):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return process

    yield begin
    for process in processes:
        process.kill()
        process.wait()


def slow(write_config, **pause):
    return write_config(
        plugins={"files": [FAULTS]},
        hook=[{"use": "pause", **pause}],
        run={"total_frames": 3200},
        logger=[{"use": "csv"}],
        checkpoint={"every": 320},
    )


def status():
    return json.loads((RUN / "status.json").read_text())


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_run_with_its_state_saved(start, cli, write_config, number, code):
    process = start(slow(write_config, seconds=0.05, from_frame=320))
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    assert "Traceback" not in errors
    stopped = status()
    assert stopped["state"] == "stopped-resumable"
    assert stopped["reason"] == number.name
    assert 320 <= stopped["frames"] < 3200
    newest = sorted(RUN.glob("checkpoints/[0-9]*"))[-1]
    assert stopped["checkpoint"] == newest.name
    assert newest.name.startswith(f"{stopped['frames']:012d}-"), "saved where it stopped"

    assert cli("train", slow(write_config, seconds=0), "--quiet", "--resume").code == 0
    assert (status()["state"], status()["frames"]) == ("done", 3200)
    frames = [int(line.split(",")[0]) for line in (RUN / "metrics.csv").read_text().splitlines()[1:]]
    assert frames == sorted(frames)


def test_a_second_interrupt_ends_the_run_at_once(start, cli, write_config):
    process = start(slow(write_config, seconds=600, point="checkpoint_saved"))
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert process.poll() is None, "the first one waits for what is running, here for ten minutes"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "the newest checkpoint stands" in errors
    assert status()["state"] == "failed-resumable"
    assert cli("train", slow(write_config, seconds=0), "--quiet", "--resume").code == 0
    assert status()["state"] == "done"
