"""Ctrl-C while the command starts, with real processes and real signals."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

RUN = Path("runs/tiny")


def wait_for(process, path):
    deadline = time.monotonic() + 120
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


SLOW_TO_IMPORT = """
import pathlib, time

try:
    pathlib.Path("imports").touch()
    time.sleep(1.0)
except BaseException:
    {then}

from rlcore import Component, hookimpl


@hookimpl
def provide_components():
    return [Component("hook", "idle", lambda config, context: object(), summary="idle")]
"""


@pytest.mark.parametrize("then", ["pass", "raise ImportError('half of it')"], ids=["swallows it", "breaks"])
def test_an_interrupt_during_an_import_waits_for_its_end_and_is_not_lost(write_config, workdir, then):
    (workdir / "slow.py").write_text(SLOW_TO_IMPORT.format(then=then))
    path = write_config(plugins={"files": ["slow.py"]}, hook=[{"use": "slow:idle"}])
    command = [sys.executable, "-m", "rlcore", "train", str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(process, workdir / "imports")
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert out == ""
    assert re.fullmatch("stopped by (Ctrl-C|SIGINT before the first frame; .*)\n", errors), errors
    assert not RUN.exists()


@pytest.mark.slow
def test_an_interrupt_at_any_time_of_the_start_stops_the_run(write_config):
    path = write_config(run={"total_frames": 3_200_000})
    command = [sys.executable, "-m", "rlcore", "train", str(path), "--quiet"]

    def start():
        shutil.rmtree(RUN, ignore_errors=True)
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    began = time.monotonic()
    process = start()
    wait_for(process, RUN / "status.json")
    whole = time.monotonic() - began
    process.kill()
    process.communicate()
    for number in range(12):
        process = start()
        time.sleep(whole * (0.1 + number / 12))
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 130, (number, errors)
        assert "Traceback" not in errors, number
        assert (
            not (RUN / "status.json").exists()
            or json.loads((RUN / "status.json").read_text())["state"] == "stopped-resumable"
        ), (number, errors)
