"""A: a process dies, or is told to stop, at any moment; the run goes on as if nothing had happened."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import threading
import time
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest
from rlcore_plugin_testing.faults.chain import run_chain
from rlcore_plugin_testing.faults.killer import Strike
from rlcore_plugin_testing.faults.recorder import compare, iterations, read
from rlcore_plugin_testing.toy_parts import ToyCheckpointer

from rlcore.checkpoints.store import Store
from rlcore.cli import command_line as cli
from rlcore.run_folder.status import read_status

ENVS = {
    "one": {"env": {"id": "CartPole-v1"}},
    "native": {"env": {"id": "CartPole-v1", "num_envs": 4, "vectorization": "native"}},
    "mujoco": {"env": {"id": "InvertedDoublePendulum-v5"}},
}
AFTERWARDS = 10_000
LARGER = {"collector": {"frames_per_batch": 256}, "checkpoint": {"every": 256}, "evaluator": {"every": 768}}


def strikes(count, seed):
    """Return strikes that are spread over all that a process does."""
    draw = random.Random(seed)
    kinds = [
        lambda: Strike(after=draw.uniform(0, 0.08)),
        lambda: Strike(point="post_optim", count=draw.randint(1, 12)),
        lambda: Strike(event=draw.randint(1, 45)),
        lambda: Strike(point="evaluation"),
        lambda: Strike(at=draw.uniform(0, 0.25)),
        lambda: Strike(point="pre_steps_log", count=draw.randint(1, 3)),
    ]
    return [kinds[number % len(kinds)]() for number in range(count)]


def work_repeated(attempts, job):
    """Return the most iterations that a resume did again."""
    batch = tomllib.loads(job.config.read_text())["collector"]["frames_per_batch"]
    trained = [frames for attempt in attempts for frames in attempt.trained]
    return max((before - after) // batch + 1 for before, after in pairwise(trained))


def killed_chain(jobs, references, equal, count, sections, seed=1, fresh_every=0):
    job = jobs.make("chain", **sections)
    attempts = run_chain(jobs.launcher, job, strikes(count, seed), seconds=100, fresh_every=fresh_every)
    assert [attempt.struck for attempt in attempts] == [True] * count + [False]
    equal(job, references.reference(**sections))
    assert work_repeated(attempts, job) <= 1
    return attempts


def test_a1_six_kills(jobs, references, equal):
    killed_chain(jobs, references, equal, 6, {"base": "ppo", "run": {"total_frames": 1280}})


@pytest.mark.slow
@pytest.mark.parametrize(("env", "kills"), [("one", 100), ("native", 30), ("mujoco", 30)])
def test_a1_many_kills_and_ten_thousand_frames(jobs, references, equal, env, kills):
    sections = {"base": "ppo", **ENVS[env], "run": {"total_frames": 256 * (kills + 100)}, **LARGER}
    attempts = killed_chain(jobs, references, equal, kills, sections, seed=ENVS[env]["env"]["id"], fresh_every=25)
    last = attempts[-1].trained
    assert last[-1] - last[0] >= AFTERWARDS, "left alone for so many frames after the last kill"


def test_a1_the_recorder_would_see_a_difference(jobs, references):
    """Another seed differs in every line: in what was collected, in the updates, in the parameters."""
    other = jobs.make("other", "ppo", run={"seed": 2})
    assert jobs.run(other).code == 0
    found = compare(references.reference("ppo").recording, other.recording)
    kinds = {kind for difference in found.differences for kind in difference.what}
    assert kinds == {"observations", "actions", "rewards", "updates", "parameters", "evaluation"}
    assert len(found.differences) >= len(iterations(other.recording))


def acknowledged(job):
    """Return the frame of the latest checkpoint that hooks were told of, or -1."""
    times = job.recording.with_suffix(".times")
    return read(times)[-1]["frames"] if times.exists() else -1


def check_store(job):
    """What was acknowledged, or something newer, loads."""
    said = acknowledged(job)
    if said >= 0:
        entry, states = Store(job.folder / "checkpoints", ToyCheckpointer(None, None), "toy").load_newest()
        assert entry.frames >= said
        assert states["progress"]["frames"] == entry.frames


# a resumed process with leftovers to clear away, one save and its retention make fifty to sixty file events
@pytest.mark.parametrize(
    "in_background",
    [pytest.param(False, id="in the loop"), pytest.param(True, marks=pytest.mark.slow, id="in the background")],
)
@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in range(1, 4))])
def test_a2_a3_kill_at_every_file_event_of_resume_save_and_retention(jobs, references, equal, first, in_background):
    checkpoint = {"every": 16, "keep_last": 1, "async": in_background}
    sections = {"run": {"total_frames": 16 * 40}, "checkpoint": checkpoint}
    job = jobs.make("chain", **sections)
    planned = [Strike(event=number) for number in range(first + 1, 60, 4)]
    checked = []
    attempts = run_chain(
        jobs.launcher, job, planned, seconds=60, after_each=lambda attempt: checked.append(check_store(job))
    )
    assert len(checked) == len(attempts) == len(planned) + 1
    equal(job, references.reference(**sections))
    assert work_repeated(attempts, job) <= 1 + in_background, "what was being written may be lost too"
    names = {path.name for path in (job.folder / "checkpoints").iterdir()}
    assert not [name for name in names if name.startswith(".")], "leftovers are gone"


def test_a2_the_events_are_those_of_resume_save_and_retention(jobs):
    """The numbers above reach every kind of event, to the end of a second save with its retention."""
    job = jobs.make("events", events="events.txt", run={"total_frames": 48}, checkpoint={"every": 16, "keep_last": 1})
    assert jobs.run(job, Strike(point="pre_steps_log", count=2)).struck
    (jobs.folder / "events.txt").unlink()
    assert jobs.run(job).code == 0
    events = [line.split()[0] for line in (jobs.folder / "events.txt").read_text().splitlines()]
    assert {"open", "fsync", "os.mkdir", "os.rename", "os.remove", "os.rmdir"} <= set(events)
    assert events.index("os.rmdir") < 58, "the end of the first retention"


@pytest.mark.slow
def test_a2_kill_at_every_file_event_of_a_whole_run(jobs, references, equal):
    sections = {"run": {"total_frames": 32}, "checkpoint": {"every": 16, "keep_last": 1}}
    number, struck = 0, True
    while struck:
        number += 1
        job = jobs.make(f"event-{number}", **sections)
        struck = jobs.run(job, Strike(event=number)).struck
        check_store(job)
        if struck:
            assert jobs.run(job).code == 0
        equal(job, references.reference(**sections))
    assert number > 60


PHASES = ["setup", "pre_steps_log", "post_optim", "evaluation", "post_steps_log", "checkpoint_saved"]


@pytest.mark.parametrize("point", PHASES)
def test_a4_sigterm_in_every_phase(jobs, references, equal, point):
    job = jobs.make("stopped")
    attempt = jobs.run(job, Strike(point=point, number=signal.SIGTERM))
    assert attempt.code == 143, attempt.output
    assert "Traceback" not in attempt.output
    status = read_status(job.folder)
    assert (status["state"], status["reason"]) == ("stopped-resumable", "SIGTERM")
    assert status["frames"] == acknowledged(job), "saved where it stopped"
    assert jobs.run(job).code == 0
    assert equal(job, references.reference()).repeated == 0


def test_a4_sigterm_at_the_end_of_a_run(jobs, references, equal):
    job = jobs.make("ended")
    attempt = jobs.run(job, Strike(point="shutdown", number=signal.SIGTERM))
    assert attempt.code == 0, "nothing is left to go on with"
    assert read_status(job.folder)["state"] == "done"
    equal(job, references.reference())


@pytest.mark.parametrize("point", ["post_optim", "evaluation"])
def test_a5_one_sigint(jobs, references, equal, point):
    job = jobs.make("stopped")
    attempt = jobs.run(job, Strike(point=point, number=signal.SIGINT))
    assert attempt.code == 130, attempt.output
    assert read_status(job.folder)["state"] == "stopped-resumable"
    assert jobs.run(job).code == 0
    assert equal(job, references.reference()).repeated == 0


@pytest.mark.parametrize("event", [30, 34, 38, 41, 44])
def test_a6_sigterm_while_a_save_runs(jobs, references, equal, event):
    job = jobs.make("stopped", checkpoint={"every": 16, "keep_last": 100})
    attempt = jobs.run(job, Strike(event=event, number=signal.SIGTERM))
    assert attempt.code == 143, attempt.output
    frames = [int(path.name[:12]) for path in sorted((job.folder / "checkpoints").glob("[0-9]*"))]
    assert frames == sorted(set(frames)), "no frame is saved twice"
    assert frames[-1] == read_status(job.folder)["frames"] == acknowledged(job)
    assert not list((job.folder / "checkpoints").glob(".partial-*"))
    assert jobs.run(job).code == 0
    equal(job, references.reference(checkpoint={"every": 16, "keep_last": 100}))


@pytest.mark.parametrize("point", PHASES)
def test_a12_an_error_in_every_phase(jobs, references, equal, point):
    job = jobs.make("failed")
    count = 1 if point in ("setup", "evaluation") else 2
    attempt = jobs.run(job, Strike(point=point, count=count, number=0))
    assert attempt.code == 7, attempt.output
    assert "RuntimeError: on purpose" in attempt.output
    assert re.search(f"raised by hook 'killer' .* at point '{point}'", attempt.output)
    assert jobs.run(job).code == 0
    assert equal(job, references.reference()).repeated <= 1


def test_a13_a_run_in_a_thread_leaves_the_handlers_alone(jobs):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)]
    job, codes = jobs.make("thread", run={"total_frames": 32}), []
    thread = threading.Thread(target=lambda: codes.append(cli.main(job.arguments())))
    thread.start()
    thread.join(60)
    assert codes == [0]
    again = jobs.make("main", run={"total_frames": 32})
    assert cli.main(again.arguments()) == 0
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)] == before


def state_of(pid):
    """Return the letter of the state of a process: R, S, T (stopped), Z, …"""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a14_a_folder_in_use_is_refused_and_that_of_a_dead_process_is_taken_over(jobs, references, equal, capsys):
    long_enough = {"run": {"total_frames": 1600}}  # not to end before it is stopped
    job = jobs.make("twice", **long_enough)
    process = jobs.launcher.start(job.arguments())
    while not iterations(job.recording):
        assert process.wait(0.001) is None, process.text()
    process.send(signal.SIGSTOP)
    try:
        deadline = time.monotonic() + 30
        while state_of(process.pid) != "T":  # it may be in the middle of a write
            assert time.monotonic() < deadline
            time.sleep(0.01)
        before = sorted(path.name for path in job.folder.rglob("*"))
        assert cli.main(job.arguments()) == 2
        message = capsys.readouterr().err
        assert f"in use by process {process.pid} on {os.uname().nodename}" in message
        assert sorted(path.name for path in job.folder.rglob("*")) == before, "nothing is touched"
    finally:
        process.send(signal.SIGKILL)
        code = process.wait(60)
    assert code == -signal.SIGKILL
    assert jobs.run(job).code == 0
    equal(job, references.reference(**long_enough))


def test_what_the_store_says_of_a_run_is_true(jobs):
    """The acknowledgement that the tests of A2 rely on comes with the commit: the manifest of that frame is there."""
    job = jobs.make("acknowledged", checkpoint={"every": 16, "keep_last": 100})
    assert jobs.run(job).code == 0
    said = [line["frames"] for line in read(job.recording.with_suffix(".times"))]
    saved = sorted(Path(job.folder / "checkpoints").glob("[0-9]*/manifest.json"))
    assert said == [json.loads(path.read_text())["progress"]["frames"] for path in saved] == [0, 16, 32, 48, 64]
