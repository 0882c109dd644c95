"""Output that cannot be written is dropped: no closed pipe, full disk or lost terminal ends a run, or lies about it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlcore.process.streams import Lenient, lenient_output

RUN = Path("runs/tiny")
RLCORE = [sys.executable, "-m", "rlcore"]
# without metrics no curves are drawn at the end, which would take longer than all else
SHOWN = {"hook": [{"use": "progress-bar"}, {"use": "console-table"}], "logger": []}
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def run(*command, **options):
    environment = os.environ | {"OMP_NUM_THREADS": "1"} | options.pop("env", {})
    return subprocess.run([*RLCORE, *map(str, command)], env=environment, timeout=90, **options)


def assert_done():
    status = json.loads((RUN / "status.json").read_text())
    assert (status["state"], status["frames"]) == ("done", 96)


@pytest.mark.parametrize(
    "sections", [pytest.param({}, marks=pytest.mark.slow, id="lines"), pytest.param(SHOWN, id="bar and table")]
)
def test_a_reader_that_leaves_does_not_end_the_run(write_config, sections):
    """As `rlcore train CONFIG 2>&1 | head -1` does."""
    command = [*RLCORE, "train", str(write_config(**sections))]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert process.wait(60) == 0
    assert_done()


@pytest.mark.parametrize(
    "place", [pytest.param("/dev/full", id="full disk"), pytest.param(None, marks=pytest.mark.slow, id="closed")]
)
def test_output_that_cannot_be_written_does_not_end_the_run(write_config, place):
    path = write_config(**SHOWN)
    if place is None:
        code = run("train", path, preexec_fn=lambda: [os.close(number) for number in (1, 2)]).returncode
    else:
        with open(place, "w") as stream:
            code = run("train", path, stdout=stream, stderr=stream).returncode
    assert code == 0
    assert_done()


def test_a_terminal_that_is_gone_does_not_end_the_run(write_config):
    ours, theirs = os.openpty()
    process = subprocess.Popen([*RLCORE, "train", str(write_config(**SHOWN))], stdout=theirs, stderr=theirs)
    os.close(theirs)
    assert os.read(ours, 1)
    os.close(ours)
    assert process.wait(60) == 0
    assert_done()


def test_a_command_whose_output_is_lost_is_no_success(write_config):
    path = write_config()
    with open("/dev/full", "w") as stream:
        done = run("config", "show", path, stdout=stream, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "error: the output could not be written: [Errno 28] No space left on device\n"
    process = subprocess.Popen([*RLCORE, "config", "show", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.wait(60) == 0, "a reader that has read enough is none of its business"
    assert process.stderr.read() == b""


SPEAKS = """
from rlcore import Component, hookimpl

class Speaks:
    def __init__(self, config, context):
        pass

    @hookimpl
    def post_steps_log(self):
        print("grüße")
        return {"länge": 1.0, "log_pbar": True}

@hookimpl
def provide_components():
    return [Component("hook", "speaks", Speaks)]
"""


def test_a_locale_without_utf_8_trains(write_config, workdir):
    (workdir / "speaks.py").write_text(SPEAKS, encoding="utf-8")
    hooks = [*SHOWN["hook"], {"use": "speaks"}]
    path = write_config(plugins={"files": ["speaks.py"]}, hook=hooks, logger=[{"use": "csv"}])
    done = run("train", path, env=ASCII, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert_done()
    assert "gr\\xfc\\xdfe" in done.stdout
    assert "l\\xe4nge" in done.stderr


def test_a_folder_that_the_locale_cannot_name_is_refused(write_config):
    done = run("train", write_config(run={"folder": "läufe"}), env=ASCII, capture_output=True, text=True)
    assert done.returncode == 2
    assert "cannot be made or written to: 'ascii' codec" in done.stderr
    assert "Traceback" not in done.stderr


# a run without a bar says where it is, and one with a bar does not say it twice


def test_a_run_without_a_bar_says_where_it_is(cli, write_config, caplog):
    caplog.set_level("INFO")
    evaluator = {"use": "episodes", "episodes": 2, "every": 64}
    outcome = cli("train", write_config(evaluator=evaluator))
    assert outcome.code == 0
    for line in ("tiny: frame 0: begins; it ends at 96", "tiny: frame 32: checkpoint 000000000032-"):
        assert line in outcome.err
    assert "tiny: frame 64: evaluation: mean return " in outcome.err
    assert "tiny: frame" not in cli("train", write_config(run={"name": "shown"}, **SHOWN)).err.replace("of 96", "")
    assert "tiny: frame" not in cli("train", write_config(run={"name": "quiet"}), "--quiet").err


def test_figures_of_hooks_leave_out_those_of_the_command(cli, write_config):
    outcome = cli("train", write_config(hook=[{"use": "console-table", "keys": ["time/hooks/"]}]))
    assert outcome.code == 0
    shown = {line.split()[0] for line in outcome.err.splitlines() if line.startswith("  ")}
    assert shown == {"time/hooks/console-table"}
    assert "Hook" not in outcome.out
    manifest = json.loads((sorted(RUN.glob("checkpoints/[0-9]*"))[-1] / "manifest.json").read_text())
    assert not [name for name in manifest["owners"] if "Status" in name or "Lines" in name]


def test_the_bar_of_a_last_batch_that_goes_beyond_the_end_is_full(cli, write_config):
    outcome = cli("train", write_config(run={"total_frames": 80}, **SHOWN))
    assert outcome.code == 0
    assert "tiny: 100%" in outcome.err
    assert "96/96" in outcome.err
    assert "/?" not in outcome.err


# the stream itself


class Breaking:
    """A stream on which nothing works."""

    encoding = "ascii"

    def write(self, text):
        raise OSError(5, "Input/output error")

    flush = fileno = lambda self: self.write("")


def test_a_stream_on_which_nothing_works_drops_what_is_written():
    stream = Lenient(Breaking())
    assert stream.write("abc") == 3
    stream.flush()
    stream.end()
    assert stream.lost is not None
    assert stream.lost.errno == 5
    assert stream.encoding == "ascii"


def test_a_script_whose_terminal_is_gone_trains(build, monkeypatch):
    run = build(**SHOWN)
    ours, theirs = os.openpty()
    with open(theirs, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        os.close(ours)
        assert run.trainer.train().frames == 96
        with pytest.raises(OSError, match="Input/output error"):
            print("this one is gone", file=stream, flush=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), theirs)  # so that it can be closed


def test_the_streams_are_put_back(monkeypatch):
    monkeypatch.setattr(sys, "stdout", Breaking())
    before = sys.stdout, sys.stderr
    with lenient_output() as output:
        print("abc")
        assert sys.stdout is output
    assert (sys.stdout, sys.stderr) == before
