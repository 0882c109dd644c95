"""`rlcore train --max-time`: a stop by the clock."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time

import pytest

from rlcore.cli.arguments import duration, spoken
from rlcore.process.this_process import age


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("30m", 1_800), ("3h55m", 14_100), ("1d", 86_400), ("1D2h3m4s", 93_784)]
)
def test_times_are_read_and_said(text, seconds):
    assert duration(text) == seconds
    assert duration(spoken(seconds)) == seconds


@pytest.mark.parametrize("text", ["", "5", "0s", "-1h", "55m3h", "1.5h", "3 h", "h", "1h1h", "99999999s"])
def test_nonsense_is_refused(cli, write_config, text):
    outcome = cli("train", write_config(), f"--max-time={text}")
    assert outcome.code == 2
    assert f"{text!r} is no time: write 90s, 30m, 3h55m or 1d" in outcome.err


def test_the_age_of_a_process_counts_from_its_start():
    code = "import time; time.sleep(0.3); from rlcore.process.this_process import age; print(age())"
    began = time.monotonic()
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert float(printed) <= time.monotonic() - began + 0.02
    if sys.platform == "linux":
        assert float(printed) >= 0.28
    assert age() > 0


def test_a_run_stops_at_an_iteration_and_goes_on_as_if_it_had_not(write_config, cli, workdir, monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    path = write_config()
    monkeypatch.setattr("rlcore.cli.train.age", lambda: 3600.0)  # of a process that was started an hour ago
    outcome = cli("train", path, "--max-time", "59m")
    assert outcome.code == 0, outcome.err
    folder = workdir / "runs" / "tiny"
    assert "--max-time 59m is over" in outcome.err
    assert "(stopped: --max-time 59m)" in outcome.out
    assert "stopped at frame 32, which is saved; continue with: rlcore train --resume" in outcome.err
    status = json.loads((folder / "status.json").read_text())
    assert (status["state"], status["reason"]) == ("stopped-resumable", "--max-time 59m")
    assert cli("train", "--resume", os.fspath(folder), "--max-time", "2h").code == 0
    assert cli("train", path, "--set", "run.name=whole").code == 0
    manifests = [max((workdir / "runs" / name / "checkpoints").glob("*/manifest.json")) for name in ("tiny", "whole")]
    stopped, whole = (json.loads(manifest.read_text()) for manifest in manifests)
    assert stopped["progress"] == whole["progress"]
    assert stopped["digest"] == whole["digest"]
