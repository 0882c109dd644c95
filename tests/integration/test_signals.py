"""Ctrl-C and termination, with real processes and real signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tomli_w
from rlcore_plugin_testing.small_run import TOY_CONFIG

from rlcore.checkpoints.manifest import read_manifest

FAULTS = str(Path(__file__).with_name("faults.py"))
RUN = Path("runs/tiny")


@pytest.fixture
def launch(forked):
    """Begin a training process; its faults are armed."""
    return lambda path, *arguments: forked("train", path, "--quiet", *arguments, TEST_FAULTS="1")


def wait_for(process, pattern, folder=RUN):
    deadline = time.monotonic() + 120
    while not list(folder.glob(pattern)):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def slow(write_config, **pause):
    return write_config(
        plugins={"files": [FAULTS]},
        hook=[{"use": "pause", **pause}],
        run={"total_frames": 3200},
        logger=[{"use": "csv"}],
        checkpoint={"every": 320},
    )


def status(folder=RUN):
    return json.loads((folder / "status.json").read_text())


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, 130),
        (signal.SIGTERM, 143),
        (signal.SIGUSR1, 138),
        pytest.param(signal.SIGHUP, 129, marks=pytest.mark.slow),
        pytest.param(signal.SIGUSR2, 140, marks=pytest.mark.slow),
    ],
)
def test_a8_a_signal_ends_the_run_with_its_state_saved(launch, cli, write_config, number, code):
    path = slow(write_config, seconds=0.05, from_frame=320)
    process = launch(path)
    wait_for(process, "checkpoints/*0320-*/manifest.json")
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    assert "Traceback" not in errors
    assert "which is saved; continue with: rlcore train --resume runs/tiny" in errors
    stopped = status()
    assert stopped["state"] == "stopped-resumable"
    assert stopped["reason"] == number.name
    assert 320 <= stopped["frames"] < 3200
    newest = sorted(RUN.glob("checkpoints/[0-9]*"))[-1]
    assert stopped["checkpoint"] == newest.name
    assert newest.name.startswith(f"{stopped['frames']:012d}-"), "saved where it stopped"

    resumed = cli("train", slow(write_config, seconds=0), "--quiet", "--resume", "--accept-changes")
    assert resumed.code == 0
    assert (status()["state"], status()["frames"]) == ("done", 3200)
    frames = [int(line.split(",")[0]) for line in (RUN / "metrics.csv").read_text().splitlines()[1:]]
    assert frames == sorted(frames)


def test_a_second_interrupt_ends_the_run_at_once(launch, cli, write_config):
    process = launch(slow(write_config, seconds=600, point="checkpoint_saved"))
    wait_for(process, "checkpoints/latest")
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert process.poll() is None, "the first one waits for what is running, here for ten minutes"
    before = sorted(RUN.glob("checkpoints/**/*"))
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "the latest checkpoint stands, of frame 0; continue with: rlcore train --resume runs/tiny" in errors
    assert sorted(RUN.glob("checkpoints/**/*")) == before, "nothing more is written"
    assert (status()["state"], status()["reason"]) == ("failed-resumable", "a second SIGINT")
    resumed = cli("train", slow(write_config, seconds=0), "--quiet", "--resume", "--accept-changes")
    assert resumed.code == 0
    assert status()["state"] == "done"


def test_quit_ends_the_run_at_once(launch, write_config):
    process = launch(slow(write_config, seconds=600, point="checkpoint_saved"))
    wait_for(process, "checkpoints/latest")
    process.send_signal(signal.SIGQUIT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 131, errors
    assert "Traceback" not in errors
    assert (status()["state"], status()["reason"]) == ("failed-resumable", "SIGQUIT")


@pytest.mark.slow
def test_a_signal_that_the_caller_ignores_stays_ignored(write_config):
    """As `nohup` does, of an interpreter that begins so."""
    command = [sys.executable, "-m", "rlcore", "train", str(slow(write_config, seconds=0.02, from_frame=320))]
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = subprocess.Popen([*command, "--quiet"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGHUP, before)
    wait_for(process, "checkpoints/*0320-*/manifest.json")
    process.send_signal(signal.SIGHUP)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert status()["state"] == "done"


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_signal_while_the_run_is_built_leaves_nothing_and_says_so(launch, cli, toy, number):
    path = toy(hook=[{"use": "sleeps-while-built"}])
    process = launch(path)
    wait_for(process, "hangs")
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number, errors
    said = f"stopped by {number.name} before the first frame; nothing is saved; the same command begins the run"
    assert said in errors
    assert "Traceback" not in errors
    assert not RUN.exists()


@pytest.mark.slow
def test_a_signal_while_a_resume_is_built_says_that_the_checkpoint_stands(launch, cli, toy):
    path = toy(hook=[{"use": "sleeps-while-built"}])
    assert cli("train", path, "--quiet", "--until", "64").code == 0
    process = launch(path, "--resume")
    wait_for(process, "hangs")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "before the first frame; continue with: rlcore train --resume runs/tiny" in errors
    assert_resumes_exactly(cli, path)


def test_a_part_that_swallows_a_stop_while_it_is_built_is_given_up_after_the_grace_time(cli, toy):
    outcome = cli("train", toy(hook=[{"use": "stops-itself-while-built"}]), "--grace", "0.2")
    assert outcome.code == 143, outcome.err
    assert "stopped by SIGTERM before the first frame; nothing is saved" in outcome.err
    assert "Traceback" not in outcome.err
    assert not RUN.exists()


@pytest.mark.parametrize(
    ("until", "code", "state"),
    [([], 0, "done"), (["--until", "32"], 143, "stopped-resumable")],
    ids=["done", "stopped"],
)
def test_a_grace_time_that_ends_while_the_run_is_summed_up_is_no_error(cli, toy, monkeypatch, until, code, state):
    def slow_summary(run):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(30)

    monkeypatch.setattr("rlcore.run.command.summary", slow_summary)
    outcome = cli("train", toy(), "--grace", "0.2", *until)
    assert outcome.code == code, outcome.err
    assert "Traceback" not in outcome.err
    assert status()["state"] == state


@pytest.mark.parametrize("handled", [True, False], ids=["its own", "nobody's"])
def test_an_alarm_of_a_part_is_its_own_and_one_that_nobody_handles_stops_the_run(launch, cli, toy, handled):
    path = toy(hook=[{"use": "rings", "handled": handled}])
    process = launch(path)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == (0 if handled else 142), errors
    assert status()["state"] == ("done" if handled else "stopped-resumable")
    if not handled:
        assert status()["reason"] == "SIGALRM"
        assert_resumes_exactly(cli, path)


# in each phase, with the toy env, whose resume is exact


@pytest.fixture
def toy(workdir):
    """Write the config of a toy run with a fault."""

    def write(**sections):
        plugins = {"files": [FAULTS]}
        evaluator = {"use": "episodes", "episodes": 2, "every": 32}
        run = {"name": "tiny", "seed": 1, "total_frames": 96, "device": "cpu", "threads": 1}
        values = TOY_CONFIG | {"run": run, "plugins": plugins, "evaluator": evaluator} | sections
        path = workdir / "toy.toml"
        path.write_text(tomli_w.dumps(values))
        return path

    return write


def newest(folder=RUN):
    return read_manifest(sorted(folder.glob("checkpoints/[0-9]*"))[-1])


def assert_resumes_exactly(cli, path):
    """Resume, and compare with a run of the same config that nothing disturbed."""
    assert cli("train", path, "--quiet", "--resume").code == 0
    assert cli("train", path, "--quiet", "--set", "run.name=whole").code == 0
    assert (status()["state"], status()["frames"]) == ("done", 96)
    assert newest()["digest"] == newest(Path("runs/whole"))["digest"]
    assert newest()["exact"] is True, newest()


def hook(use, point, frame):
    return {"hook": [{"use": use, "point": point, "from_frame": frame}]}


PHASES = {
    "set-up": (hook("signals", "setup", 0), 0),
    "collecting": (hook("signals", "episode_end", 40), 48),
    "preparing the batch": (hook("signals", "batch_process", 40), 64),  # its own frames count after it
    "optimising": (hook("signals", "post_optim", 40), 48),
    "evaluating": (hook("signals", "evaluation", 40), 64),
    "evaluating at the start": (hook("signals", "evaluation", 0), 0),
    "logging": (hook("signals", "post_steps_log", 40), 48),
    "after saving": (hook("signals", "checkpoint_saved", 0), 0),
    "saving": ({"checkpoint": {"use": "signals-while-saving", "every": 32}}, 32),
}


@pytest.mark.parametrize(
    "phase", ["optimising", *(pytest.param(phase, marks=pytest.mark.slow) for phase in PHASES if phase != "optimising")]
)
def test_a_termination_in_any_phase_stops_at_the_next_safe_point_and_resumes_exactly(launch, cli, toy, phase):
    sections, frames = PHASES[phase]
    path = toy(**sections)
    process = launch(path)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 143, errors
    assert "Traceback" not in errors
    stopped = status()
    assert (stopped["state"], stopped["reason"], stopped["frames"]) == ("stopped-resumable", "SIGTERM", frames)
    assert newest()["progress"]["frames"] == frames
    assert not list(RUN.glob("checkpoints/.*")), "no save was left half done"
    assert_resumes_exactly(cli, path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("point", "frame", "code", "state"),
    [("setup", 0, 143, "stopped-resumable"), ("shutdown", 96, 0, "done"), ("post_steps_log", 96, 0, "done")],
)
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_termination_outside_the_loop_does_no_harm(launch, cli, toy, point, frame, code, state, ranks):
    sections = hook("signals", point, frame)
    if ranks > 1:
        sections["hook"][0]["to"] = "supervisor"
        sections |= {"ranks": {"count": 2}, "env": {**TOY_CONFIG["env"], "num_envs": 2}}
    path = toy(**sections)
    process = launch(path)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    assert status()["state"] == state
    assert_resumes_exactly(cli, path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("point", "frame", "left"),
    [("post_optim", 40, None), ("checkpoint_saved", 32, 32), ("setup", 0, None), ("evaluation", 64, None)],
)
def test_when_the_grace_time_is_over_the_iteration_is_given_up(launch, cli, toy, point, frame, left):
    path = toy(**hook("hangs", point, frame))
    process = launch(path, "--grace", "1")
    wait_for(process, "hangs")
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=50)
    assert 0.9 < time.monotonic() - began < 10
    assert process.returncode == 143, errors
    assert "no safe point within 1 s of SIGTERM; what was not finished is discarded" in errors
    assert "Traceback" not in errors
    assert status()["state"] == "stopped-resumable"
    saved = newest()["progress"]["frames"] if list(RUN.glob("checkpoints/[0-9]*")) else None
    assert (", nothing is saved;" in errors) == (saved is None)
    assert (", which is saved;" in errors) == (saved == status()["frames"])
    assert ("the latest checkpoint stands, of frame" in errors) == (saved not in (None, status()["frames"]))
    if left is not None:
        assert newest()["progress"]["frames"] == left
    assert_resumes_exactly(cli, path)


@pytest.mark.slow
def test_a_main_thread_that_hears_nothing_is_given_up_without_a_watchdog_too(launch, cli, toy):
    run = {"name": "tiny", "seed": 1, "total_frames": 96, "device": "cpu", "threads": 1, "hang_after": 0}
    path = toy(hook=[{"use": "deaf"}], run=run)
    process = launch(path, "--grace", "1")
    wait_for(process, "hangs")
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=50)
    assert time.monotonic() - began < 20
    assert process.returncode == 143, errors
    assert (status()["state"], status()["reason"]) == ("stopped-resumable", "SIGTERM")
    assert_resumes_exactly(cli, path)


@pytest.mark.slow
def test_a_save_that_moves_may_finish_after_the_grace_time(launch, cli, toy):
    path = toy(checkpoint={"use": "signals-while-saving", "every": 32, "seconds": 4})
    process = launch(path, "--grace", "1")
    _, errors = process.communicate(timeout=50)
    assert process.returncode == 143, errors
    assert "no safe point" not in errors
    assert status()["checkpoint"].startswith("000000000032-")
    assert len(list(RUN.glob("checkpoints/000000000032-*"))) == 1, "it is made once"
    assert_resumes_exactly(cli, path)


def test_after_a_second_interrupt_within_a_save_the_status_names_the_newest_checkpoint(launch, cli, toy):
    path = toy(checkpoint={"use": "signals-while-saving", "every": 32, "signals": ["SIGINT", "SIGINT"], "seconds": 5})
    process = launch(path)
    _, errors = process.communicate(timeout=50)
    assert process.returncode == 130, errors
    assert status()["state"] == "failed-resumable"
    assert status()["checkpoint"] == sorted(RUN.glob("checkpoints/[0-9]*"))[-1].name
    assert "the latest checkpoint stands, of frame 0; continue with" in errors
    assert_resumes_exactly(cli, path)


@pytest.mark.slow
def test_a_shutdown_that_hangs_is_given_up_after_the_grace_time(launch, cli, toy):
    path = toy(**hook("hangs", "shutdown", 0))
    process = launch(path, "--grace", "1")
    wait_for(process, "hangs")
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=50)
    assert process.returncode == 0, errors
    assert status()["state"] == "done"
    assert_resumes_exactly(cli, path)
