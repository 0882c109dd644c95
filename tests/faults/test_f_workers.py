"""Rows F, and some of A and C, for envs in worker processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rlcore_plugin_parallel import journal
from rlcore_plugin_testing import make_run
from rlcore_plugin_testing.faults.chain import run_chain
from rlcore_plugin_testing.faults.killer import Strike

from rlcore import EnvError
from rlcore.run_folder.status import read_status
from rlcore.training.lost import lost

WORKERS = {
    "use": "parallel:workers",
    "processes": "always",
    "frames_per_batch": 16,
    "num_workers": 2,
    "start_method": "fork",
    "timeout": 2,
}
ALONE = {**WORKERS, "restarts": 0}


def broken(fault, at=20, mode="sync"):
    """Return sections in which every worker fails in its third batch of 8 steps."""
    env = {"use": "testing:faulty", "fault": fault, "at": at, "num_envs": 2}
    return {"env": env, "collector": {**ALONE, "mode": mode}, "evaluator": None}


def train(tmp_path, sections):
    """Train until it fails; return the error, the run and the seconds that it took."""
    run = make_run("checkpoint.every=16", folder=tmp_path, sections=sections)
    pids = run.trainer.collector.pids()
    began = time.monotonic()
    with pytest.raises(EnvError) as caught:
        run.trainer.train()
    assert gone(pids), "workers are left behind"
    return caught.value, run, time.monotonic() - began


def gone(pids):
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


def frames_saved(run):
    return [entry.frames for entry in run.trainer.parts.store.entries()]


def shared_memory():
    """Return what multiprocessing and torch name there; other programs have files of their own."""
    return {name for name in os.listdir("/dev/shm") if name.startswith(("pym-", "psm_", "torch_"))}


def wait_for(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("row", "fault", "message"),
    [
        ("F1", "raise", "env 'toy' at step 4 of the batch that began at frame 32: RuntimeError: on purpose"),
        ("F7", "nan reward", "reward of env [01] at step 4 of the batch that began at frame 32 is nan"),
        ("F8", "wrong shape", "env 'toy' at step 4 of the batch that began at frame 32: ValueError"),
    ],
)
def test_f1_f7_f8_what_fails_in_a_worker_is_an_error_with_its_message_and_stack(tmp_path, row, fault, message):
    error, run, _ = train(tmp_path, broken(fault))
    assert error.args[0].startswith("collector worker "), row
    assert re.search(rf"worker [01] \(envs ([01]) to \1\): .*{message}", str(error)), str(error)
    notes = "\n".join(error.__notes__)
    assert "Traceback (most recent call last)" in notes
    assert run.trainer.progress.frames == 32
    assert frames_saved(run)[-1] == 32


def test_f1_a_run_whose_workers_failed_goes_on_as_if_nothing_had_happened(tmp_path):
    whole = make_run("checkpoint.every=16", folder=tmp_path / "whole", sections=broken("none"))
    whole.trainer.train()
    train(tmp_path, broken("raise"))
    # the simulator was fixed: a fault that comes too late to be met
    resumed = make_run("checkpoint.every=16", folder=tmp_path, sections=broken("raise"), resume=True)
    state = resumed.trainer.collector.state_dict()
    for worker in state["episodes"]:
        worker["env"]["left"] = 10_000
    resumed.trainer.collector.load_state_dict(state)
    resumed.trainer.train()
    digests = [run.trainer.parts.store.entries()[-1].manifest["digests"] for run in (whole, resumed)]
    assert digests[0]["model"] == digests[1]["model"]
    assert digests[0]["metrics"] == digests[1]["metrics"]


def test_f2_a_reset_that_raises_in_a_worker_is_refused_before_the_first_frame(tmp_path):
    error, run, _ = train(tmp_path, broken("reset raises", at=0))
    assert "env 'toy' in its reset of the batch that began at frame 0: RuntimeError: on purpose" in str(error)
    assert run.trainer.progress.frames == 0


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_f3_a_worker_that_hangs_ends_the_run_within_the_timeout(tmp_path, mode):
    error, run, seconds = train(tmp_path, broken("hang", mode=mode))
    assert "took no step for 2 s and was killed; its stacks are in stacks-worker-" in str(error)
    assert seconds < 12
    assert frames_saved(run)[-1] == 32
    (stacks,) = run.folder.glob("stacks-worker-*.txt")
    assert "in end_of" in stacks.read_text(), "it names the place"


def test_f3_a_worker_that_is_stopped_is_taken_to_hang(tmp_path):
    run = make_run(folder=tmp_path, sections=broken("none"))
    pids = run.trainer.collector.pids()
    iterations = iter(run.trainer)
    assert next(iterations).frames == 16
    os.kill(pids[1], signal.SIGSTOP)
    with pytest.raises(EnvError, match=r"collector worker 1 \(envs 1 to 1\) took no step for 2 s and was killed"):
        next(iterations)
    assert gone(pids)


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize(
    ("fault", "message"), [("exit", "ended with exit code 1"), ("kill", r"was killed by SIGKILL \(perhaps")]
)
def test_f4_f6_a11_a_worker_that_is_gone_and_not_replaced_ends_the_run_and_is_named(tmp_path, mode, fault, message):
    sections = broken(fault, mode=mode)
    sections["collector"]["timeout"] = 60
    error, run, seconds = train(tmp_path, sections)
    assert re.search(rf"collector worker [01] \(envs [01] to [01]\) {message}", str(error)), str(error)
    assert seconds < 20, "nobody waits for the timeout"
    assert run.trainer.progress.frames == 32
    assert frames_saved(run)[-1] == 32


def killing(tmp_path, at, mode="sync", **keys):
    """Train, and kill a worker when so many frames are collected; return the run and the metrics of the collector."""
    collector = {**WORKERS, "timeout": 60, "mode": mode, **keys}
    run = make_run("run.total_frames=160", folder=tmp_path, sections={"collector": collector})
    metrics = []
    for progress in run.trainer:
        metrics.append(run.trainer.collector.metrics())
        if progress.frames in at:
            os.kill(run.trainer.collector.pids()[progress.frames // 16 % 2], signal.SIGKILL)
    return run, metrics


@pytest.fixture
def kept_often(monkeypatch):
    """Let workers keep their state after every batch."""
    monkeypatch.setattr(journal, "EVERY", 0.0)
    monkeypatch.setattr(journal, "SHARE", 0.0)


@pytest.mark.parametrize("often", [False, True], ids=["replayed", "loaded"])
def test_f4_a_worker_that_is_killed_is_replaced_and_the_run_has_the_same_bits(tmp_path, often, request):
    if often:
        request.getfixturevalue("kept_often")
    whole, _ = killing(tmp_path / "whole", at=())
    run, metrics = killing(tmp_path / "killed", at=(16, 80, 96))
    digests = [each.trainer.parts.store.entries()[-1].manifest["digest"] for each in (whole, run)]
    assert digests[0] == digests[1]
    assert metrics[-1]["replaced_workers"] == 3
    assert metrics[-1]["dropped_episodes"] == 0
    assert lost(run.trainer.parts, None) == {"workers replaced": 3}


def test_f3_a_worker_that_hangs_is_replaced(tmp_path):
    whole, _ = killing(tmp_path / "whole", at=())
    run = make_run("run.total_frames=160", folder=tmp_path / "stopped", sections={"collector": WORKERS})
    for progress in run.trainer:
        if progress.frames == 48:
            os.kill(run.trainer.collector.pids()[1], signal.SIGSTOP)
    digests = [each.trainer.parts.store.entries()[-1].manifest["digest"] for each in (whole, run)]
    assert digests[0] == digests[1]


def test_f6_workers_ahead_that_are_killed_begin_new_episodes_which_are_counted(tmp_path, caplog):
    run, metrics = killing(tmp_path, at=(48, 96), mode="async")
    assert run.trainer.progress.frames == 160
    assert metrics[-1]["replaced_workers"] == 2
    assert metrics[-1]["dropped_episodes"] == 1, "the other one was between two episodes"
    assert lost(run.trainer.parts, None) == {"episodes dropped": 1, "workers replaced": 2}
    assert "another process takes its place (2 of 3, [collector] restarts)" in caplog.text


def test_f4_envs_that_cannot_be_saved_begin_new_episodes_and_buffers_hear_of_it(tmp_path, monkeypatch):
    monkeypatch.setattr("rlcore_plugin_testing.toy.ToyEnv.inexact", lambda env: "on purpose", raising=False)
    forgotten = []
    monkeypatch.setattr(
        "rlcore_plugin_rollout.rollout.RolloutBuffer.forget_episodes",
        lambda buffer: forgotten.append(buffer),
        raising=False,
    )
    _, metrics = killing(tmp_path, at=(32,))
    assert metrics[-1]["dropped_episodes"] == 1
    assert len(forgotten) == 1


def test_f5_restarts_that_are_spent_end_the_run_resumable(tmp_path):
    with pytest.raises(EnvError, match=r"was killed by SIGKILL .*; its 2 restarts are spent \(\[collector\] restarts"):
        killing(tmp_path, at=(16, 32, 48, 64), restarts=2)


@pytest.mark.slow
def test_f5_a_worker_that_ends_wherever_it_begins_spends_the_restarts(forked_cli, write_config, workdir):
    (workdir / "dying.py").write_text(DYING)
    done = forked_cli("train", dying(write_config))
    assert done.code == 3, done.err
    assert "its 3 restarts are spent" in done.err
    assert read_status(Path("runs/tiny"))["state"] == "failed-resumable"


DYING = """
import os
import re
import gymnasium, numpy as np
from rlcore import hookimpl

class Dying(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.steps += 1
        if self.steps > 400:
            os._exit(7)
        return np.zeros(1, np.float32), 1.0, self.steps % 7 == 0, False, {}

gymnasium.register("Dying-v0", Dying)

@hookimpl
def provide_components():
    return []
"""


def dying(write_config, **sections):
    """Return a config whose envs come from a loose file, which the workers import too."""
    return write_config(
        plugins={"files": ["dying.py"]},
        run={"total_frames": 100_000},
        env={"use": "gymnasium", "id": "Dying-v0", "num_envs": 2},
        collector={"use": "parallel:workers", "processes": "always", "num_workers": 2, "frames_per_batch": 32},
        **sections,
    )


ENDLESS = """
import sys
from rlcore_plugin_testing import make_run

if __name__ == "__main__":
    collector = {"use": "parallel:workers", "processes": "always", "frames_per_batch": 16}
    collector |= {"start_method": sys.argv[1], "mode": sys.argv[2]}
    run = make_run(
        "run.total_frames=100_000_000", "metrics.every=16_000", "evaluator.every=50_000_000",
        folder=sys.argv[3], sections={"collector": collector},
    )
    print(*run.trainer.collector.pids(), flush=True)
    for progress in run.trainer:
        if progress.frames == 64:
            print("trains", flush=True)
"""


@pytest.mark.parametrize(
    ("start_method", "mode"), [("fork", "async"), pytest.param("forkserver", "sync", marks=pytest.mark.slow)]
)
def test_a10_f15_nothing_is_left_of_the_workers_of_a_process_that_was_killed(tmp_path, start_method, mode):
    before = shared_memory()
    program = tmp_path / "endless.py"
    program.write_text(ENDLESS)
    command = [sys.executable, str(program), start_method, mode, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pids = [int(pid) for pid in process.stdout.readline().split()]
        assert len(pids) == 2
        assert process.stdout.readline() == "trains\n"
        process.kill()
    wait_for(lambda: gone(pids), 30)
    # what other tests have there at this moment goes away; what is left behind would stay
    left = shared_memory() - before
    wait_for(lambda: not left & shared_memory(), 30)


HANGING = """
import sys
from rlcore_plugin_testing import make_run

if __name__ == "__main__":
    collector = {"use": "parallel:workers", "processes": "always", "frames_per_batch": 16}
    collector |= {"start_method": sys.argv[1], "timeout": 600}
    env = {"use": "testing:faulty", "fault": sys.argv[2], "at": 12, "num_envs": 2}
    run = make_run(
        "run.total_frames=100_000_000", folder=sys.argv[3],
        sections={"collector": collector, "env": env, "evaluator": None},
    )
    print(*run.trainer.collector.pids(), flush=True)
    for progress in run.trainer:
        print(progress.frames, flush=True)
"""


@pytest.mark.parametrize(
    ("start_method", "fault"),
    [
        pytest.param("forkserver", "hang with the GIL", marks=pytest.mark.slow),
        pytest.param("forkserver", "stopped", marks=pytest.mark.slow),
        pytest.param("spawn", "hang with the GIL", marks=pytest.mark.slow),
        ("fork", "stopped"),
        pytest.param("fork", "hang with the GIL", marks=pytest.mark.slow),
    ],
)
def test_a10_workers_that_cannot_end_by_themselves_end_with_a_learner_that_was_killed(tmp_path, start_method, fault):
    program = tmp_path / "hanging.py"
    program.write_text(HANGING)
    named = "none" if fault == "stopped" else fault
    command = [sys.executable, str(program), start_method, named, str(tmp_path / "runs")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pids = [int(pid) for pid in process.stdout.readline().split()]
        assert process.stdout.readline() == "16\n"
        if fault == "stopped":
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
        else:
            time.sleep(1)
        process.kill()
    wait_for(lambda: all(dead(pid) for pid in pids), 10)


def dead(pid):
    """Return whether a process has ended; a container may have nobody who asks for its exit code."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGINT, marks=pytest.mark.slow),
        signal.SIGTERM,
        pytest.param(signal.SIGUSR1, marks=pytest.mark.slow),
    ],
)
def test_a4_a5_f15_a_signal_to_all_processes_stops_the_run_and_leaves_none(write_config, workdir, number):
    before = shared_memory()
    config = write_config(
        run={"total_frames": 100_000_000},
        env={"use": "gymnasium", "id": "CartPole-v1", "num_envs": 2},
        collector={"use": "parallel:workers", "processes": "always", "num_workers": 2, "frames_per_batch": 32},
    )
    command = [sys.executable, "-m", "rlcore", "train", str(config), "--quiet"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    checkpoints = Path("runs/tiny/checkpoints")
    try:
        wait_for(lambda: process.poll() is not None or len(list(checkpoints.glob("0*"))) > 1, 60)
        os.killpg(process.pid, number)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 128 + number, err
    assert read_status(Path("runs/tiny"))["state"] == "stopped-resumable"
    wait_for(lambda: not group(process.pid), 5)
    assert shared_memory() <= before
    assert not list(Path("runs/tiny").glob("stacks-*")), "empty files are removed"


def group(leader):
    """Return the processes of a process group."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == leader and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def test_a1_c15_a_run_with_workers_that_is_killed_again_and_again_is_the_run_without_a_stop(jobs, references, equal):
    sections = {"collector": {k: v for k, v in WORKERS.items() if k != "timeout"}}
    job = jobs.make("chain", **sections)
    strikes = [Strike(point="post_steps_log", count=2), Strike(event=12), Strike(point="post_steps_log")]
    attempts = run_chain(jobs.launcher, job, strikes, seconds=100)
    assert [attempt.struck for attempt in attempts] == [True] * len(strikes) + [False]
    equal(job, references.reference(**sections))


def test_c15_a_run_with_workers_ahead_of_the_learner_says_that_a_resume_is_not_exact(tmp_path):
    sections = {"collector": {**WORKERS, "mode": "async"}}
    run = make_run(folder=tmp_path, sections=sections)
    run.trainer.stop_at = 32
    run.trainer.train()
    manifest = run.trainer.parts.store.entries()[-1].manifest
    assert manifest["exact"] is False
    assert "workers collect ahead of the learner" in str(manifest)
    resumed = make_run(folder=tmp_path, sections=sections, resume=True)
    assert resumed.trainer.collector.dropped_episodes == 2, "the running episodes of both envs are counted"
    resumed.trainer.train()
    assert resumed.trainer.progress.frames == 64
