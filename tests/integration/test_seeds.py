"""`rlcore train --seeds`, as typed: real processes, stopped, failing, resumed."""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
import tomli_w
from rlcore_plugin_reports.seeds.plan import Seed
from rlcore_plugin_reports.seeds.training import arguments_of

from rlcore.checkpoints.manifest import scan
from rlcore.cli import train_flags
from rlcore.cli.command_line import parser
from rlcore.process.this_process import age

EVALUATED = {"evaluator": {"use": "episodes", "episodes": 2, "every": 32}}
LONG = {"run": {"total_frames": 4_000_000}, "checkpoint": {"every": 3_200}, "metrics": {"every": 3_200}}
FAILS_ON_TWO = """
from rlcore import Component, hookimpl


class Fragile:
    def __init__(self, config, context):
        pass

    @hookimpl
    def setup(self, trainer):
        if trainer.run_info.seed == 2:
            raise RuntimeError("two is too many")


@hookimpl
def provide_components():
    return [Component("hook", "fragile", Fragile, summary="fails")]
"""


def train(*arguments):
    command = [sys.executable, "-m", "rlcore", "train", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def status(run):
    return json.loads((Path("runs") / run / "status.json").read_text())


def states():
    return {run.name: status(run.name)["state"] for run in sorted(Path("runs").iterdir()) if run.is_dir()}


def test_seeds_are_trained_compared_and_gone_on_with(cli, write_config):
    path = write_config(**EVALUATED)
    outcome = cli("train", path, "--seeds", "2", "--jobs", "2", "--until", "64")
    assert outcome.code == 0, outcome.err
    assert states() == {"tiny-seed-1": "stopped-resumable", "tiny-seed-2": "stopped-resumable"}
    assert "| tiny    |     2 |" in outcome.out, "the runs are one setting"
    assert f"2 of 2 not done; continue: rlcore train {path} --seeds 2 --jobs 2 --resume" in outcome.out
    assert not list(Path("runs").glob("*.log")), "what a run prints is in its folder"
    assert "tiny-seed-1: 64 frames" in Path("runs/tiny-seed-1/output.log").read_text()

    before = {file: file.read_bytes() for file in Path("runs").rglob("*") if file.is_file()}
    refused = cli("train", path, "--seeds", "3")
    assert refused.code == 2
    assert "runs/tiny-seed-1, runs/tiny-seed-2 exist already; continue with --resume" in refused.err
    changed = cli("train", path, "--seeds", "3", "--resume", "--set", "loss.clip_epsilon=0.3")
    assert changed.code == 2
    assert "runs/tiny-seed-1: --resume: the config differs" in changed.err
    assert before == {file: file.read_bytes() for file in Path("runs").rglob("*") if file.is_file()}

    outcome = cli("train", path, "--seeds", "1,2", "--jobs", "2", "--resume", "--quiet")
    assert (outcome.code, outcome.out) == (0, "")
    assert states() == {"tiny-seed-1": "done", "tiny-seed-2": "done"}
    written = [Path(f"runs/tiny-seed-{seed}/output.log").stat().st_mtime_ns for seed in (1, 2)]
    outcome = cli("train", path, "--seeds", "2", "--resume")
    assert outcome.code == 0
    assert "| tiny    |     2 |" in outcome.out, "what is done is compared again"
    assert written == [Path(f"runs/tiny-seed-{seed}/output.log").stat().st_mtime_ns for seed in (1, 2)]

    tables = [Path(f"runs/tiny-seed-{seed}/evaluations.csv").read_text() for seed in (1, 2)]
    assert tables[0] != tables[1], "each has its seed"


def test_what_does_not_fit_is_refused_before_anything_starts(cli, write_config):
    path = write_config()
    for arguments, message in (
        (["--jobs", "2"], "--jobs says how many seeds are trained at a time; add --seeds"),
        (["--seeds", "none"], "--seeds none: a number of seeds, such as 5"),
        (["--seeds", "2", "--set", "loss.clip=1"], "clip"),
    ):
        outcome = cli("train", path, *arguments)
        assert outcome.code == 2
        assert message in outcome.err
    assert "--seeds is about the runs of a CONFIG" in cli("train", "--seeds", "2", "--resume", "runs/tiny").err
    assert not Path("runs").exists()
    outcome = cli("train", path, "--seeds", "2", "--dry-run")
    assert (outcome.code, Path("runs").exists()) == (0, False)
    assert "Runs: runs/tiny-seed-1, runs/tiny-seed-2" in outcome.out


def typed(flag):
    """Return a flag of train as it is typed, with a value that it takes."""
    name = flag.option_strings[-1]
    if flag.nargs in (0, "?"):
        return [name]
    for value in ("7", "1h"):
        with suppress(argparse.ArgumentTypeError):
            assert flag.type is None or flag.type(value) is not None
            return [name, value]
    raise AssertionError(f"{name} takes none of the values; add one")


@pytest.mark.parametrize("goes_on", [True, False])
def test_every_flag_of_train_reaches_the_runs_that_it_is_about(goes_on):
    given = ["train", "c.toml", *(word for flag in train_flags() for word in typed(flag))]
    options = vars(parser(given).parse_args(given))
    passed = arguments_of(argparse.Namespace(**options), Seed(2, Path("runs/run-seed-2"), goes_on=goes_on))
    again = vars(parser(passed).parse_args(passed))
    defaults = {flag.dest: flag.default for flag in train_flags()}
    assert not [name for name, default in defaults.items() if options[name] == default], "this test types every flag"
    assert again["set"] == ["7", "run.seed=2", "run.name=run-seed-2"]
    left = 3600 - age()
    assert left - 60 < again["max_time"] < left + 60, "what is left of it"
    of_the_command = {"seeds", "jobs", "dry_run", "json"}
    of_a_resume = {"resume", "drop", "fresh", "accept_changes"}
    for name in options.keys() - {"set", "max_time"}:
        handed_on = name not in of_the_command and (goes_on or name not in of_a_resume)
        assert again[name] == (options if handed_on else defaults)[name], name


@pytest.mark.slow
def test_a_seed_that_fails_stops_no_other(write_config, workdir):
    (workdir / "fragile.py").write_text(FAILS_ON_TWO)
    path = write_config(plugins={"files": ["fragile.py"]}, hook=[{"use": "fragile:fragile"}], **EVALUATED)
    process = train(path, "--seeds", "3")
    out, err = process.communicate(timeout=300)
    assert process.returncode == 7, err
    assert "error: seed 2: RuntimeError: two is too many; see runs/tiny-seed-2" in err
    assert "seed 2  failed" in out
    assert "| tiny    |     2 |" in out, "those that did not fail are compared"
    assert "1 of 3 not done; continue: " in out
    assert [name for name, state in states().items() if state == "done"] == ["tiny-seed-1", "tiny-seed-3"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_every_seed_with_its_state_saved(write_config, number):
    path = write_config(**LONG)
    process = train(path, "--seeds", "3", "--jobs", "2")
    files = [Path(f"runs/tiny-seed-{seed}/metrics.csv") for seed in (1, 2)]
    folders = [Path(f"runs/tiny-seed-{seed}/checkpoints") for seed in (1, 2)]
    end = time.monotonic() + 120
    while not all(any(folder.glob("0*")) for folder in folders):
        assert time.monotonic() < end, (process.poll(), files)
        time.sleep(0.2)
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 128 + number, err
    assert states() == {"tiny-seed-1": "stopped-resumable", "tiny-seed-2": "stopped-resumable"}
    assert not Path("runs/tiny-seed-3").exists(), "no further one is started"
    assert f"3 of 3 not done; continue: rlcore train {path} --seeds 3 --jobs 2 --resume" in out
    reached = status("tiny-seed-1")["frames"]
    assert reached > 0

    if number == signal.SIGTERM:
        return
    process = train(path, "--seeds", "2", "--jobs", "2", "--resume", "--until", str(reached + 6_400), "--quiet")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert status("tiny-seed-1")["frames"] >= reached + 6_400


def trainers():
    """Return the processes that train in this folder."""
    here, found = Path.cwd(), []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cwd").resolve() == here and b"train" in (process / "cmdline").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return found


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
@pytest.mark.parametrize("seconds", [0.3, 1.5, None], ids=["while they start", "while they are built", "in training"])
def test_a_kill_of_the_command_ends_its_runs_with_their_state_saved(write_config, seconds):
    lasting = {"run": {"total_frames": 16_000}, "checkpoint": {"every": 800}, "metrics": {"every": 3_200}}
    path = write_config(**lasting)
    command = (path, "--seeds", "2", "--jobs", "2")
    folders = [Path(f"runs/tiny-seed-{seed}") for seed in (1, 2)]
    process = train(*command)
    end = time.monotonic() + 120
    while len(trainers()) < 3 or not (seconds or all(list(f.glob("checkpoints/0*800-*")) for f in folders)):
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.02)
    time.sleep(seconds or 0.0)
    process.kill()
    process.wait()
    if seconds is None:
        end = time.monotonic() + 30
        while trainers():
            assert time.monotonic() < end, "its runs train on"
            time.sleep(0.05)
        assert states() == {"tiny-seed-1": "stopped-resumable", "tiny-seed-2": "stopped-resumable"}
        assert {status(folder.name)["reason"] for folder in folders} == {"SIGTERM"}
        assert all(status(folder.name)["frames"] < 16_000 for folder in folders)

    process = train(*command, "--resume")
    _, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    assert states() == {"tiny-seed-1": "done", "tiny-seed-2": "done"}
    if seconds is not None:
        return
    alone = write_config("alone.toml", **{**lasting, "run": {**lasting["run"], "name": "alone", "seed": 2}})
    with train(alone) as process:
        process.communicate(timeout=240)
    digests = [
        scan(Path("runs") / run / "checkpoints").entries[-1].manifest["digest"] for run in ("alone", "tiny-seed-2")
    ]
    assert digests[0] == digests[1], "the kill changed nothing"


@pytest.mark.slow
def test_a_config_that_changes_meanwhile_starts_no_further_seed(write_config):
    path = write_config(**EVALUATED)
    process = train(path, "--seeds", "2")
    text = path.read_text()
    end = time.monotonic() + 120
    while not Path("runs/tiny-seed-1/config.toml").exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    path.write_text(text + tomli_w.dumps({"extra": {"key": 1}}))
    _, err = process.communicate(timeout=120)
    assert "was changed meanwhile, so no further seed is started" in err
    assert process.returncode == 2
    assert not Path("runs/tiny-seed-2").exists()


@pytest.mark.slow
def test_each_seed_may_be_trained_by_several_ranks(cli, write_config):
    ranks = {"ranks": {"count": 2}, "env": {"num_envs": 2}}
    path = write_config(**EVALUATED, **ranks)
    outcome = cli("train", path, "--seeds", "2", "--jobs", "2", "--until", "64")
    assert outcome.code == 0, outcome.err
    assert set(states().values()) == {"stopped-resumable"}
    outcome = cli("train", path, "--seeds", "2", "--jobs", "1", "--resume")
    assert outcome.code == 0, outcome.err
    assert states() == {"tiny-seed-1": "done", "tiny-seed-2": "done"}
    alone = write_config("alone.toml", **EVALUATED, **ranks, run={"name": "alone", "seed": 2})
    with train(alone) as process:
        assert process.wait(60) == 0
    digests = [
        scan(Path("runs") / run / "checkpoints").entries[-1].manifest["digest"] for run in ("alone", "tiny-seed-2")
    ]
    assert digests[0] == digests[1], "a seed is the run of its config with that seed"
