"""Rows F: environments that fail, hang or give what cannot be trained on."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rlcore_plugin_testing import make_run

from rlcore import EnvError

HANGING = """
import signal, time
import gymnasium, numpy as np
from rlcore import hookimpl

class Hanging(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    made = 0

    def __init__(self, how="sleep", where=1):
        self.how, self.steps = how, 0
        Hanging.made += 1
        self.hangs = Hanging.made == where

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.steps += 1
        if self.how != "never" and self.hangs and self.steps > 38:
            if self.how == "deaf":
                signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGURG})
            while True:
                try:
                    time.sleep(60)
                except Exception:
                    pass  # an env may swallow what it wants
        return np.zeros(1, np.float32), 1.0, self.steps % 7 == 0, False, {}

gymnasium.register("Hanging-v0", Hanging)

class Sleeper:
    @hookimpl
    def post_steps(self, trainer):
        if trainer.progress.frames >= 64:
            time.sleep(600)

    def __init__(self, config, context):
        pass

@hookimpl
def provide_components():
    from rlcore import Component
    return [Component("hook", "sleeper", Sleeper)]
"""


@pytest.fixture
def run(forked_cli, write_config, workdir):
    return lambda **sections: train(forked_cli, write_config, workdir, **sections)


def train(forked_cli, write_config, tmp_path, **sections):
    (tmp_path / "hanging.py").write_text(HANGING)
    config = write_config(plugins={"files": ["hanging.py"]}, run={"hang_after": 2}, **sections)
    began = time.monotonic()
    done = forked_cli("train", config, "--quiet")
    return done, time.monotonic() - began, json.loads(Path("runs/tiny/status.json").read_text())


@pytest.mark.parametrize("how", ["sleep", pytest.param("deaf", marks=pytest.mark.slow)])
def test_f3_an_env_that_hangs_ends_the_run_in_bounded_time(run, how):
    env = {"use": "gymnasium", "id": "hanging:Hanging-v0", "kwargs": {"how": how}}
    done, seconds, status = run(env=env)
    assert done.code == 3, done.err
    assert seconds < 40
    assert status["state"] == "failed-resumable"
    assert "nothing moved for 2 s in step" in status["reason"]
    assert "hanging.py" in status["reason"], "it names the place"
    assert "in step" in Path("runs/tiny/stacks.txt").read_text()


def test_f3_an_env_that_hangs_while_it_is_tried_out_ends_in_bounded_time(forked_cli, write_config, workdir):
    (workdir / "hanging.py").write_text(HANGING)
    env = {"use": "gymnasium", "id": "hanging:Hanging-v0", "kwargs": {"where": 2}}
    config = write_config(plugins={"files": ["hanging.py"]}, run={"hang_after": 2}, env=env)
    done = forked_cli("train", config, seconds=60)
    assert done.code == 3
    assert "nothing moved for 2 s in step" in done.err
    assert not Path("runs/tiny").exists(), "no frame was collected, so the same command may be given again"


def test_d9_a_hook_that_hangs_ends_the_run_in_bounded_time(run):
    done, seconds, status = run(hook=[{"use": "sleeper"}])
    assert done.code == 3, done.err
    assert seconds < 40
    assert status["state"] == "failed-resumable"
    assert "post_steps" in status["reason"]
    assert list(Path("runs/tiny/checkpoints").glob("000000000032-*")), "the state before the iteration that hung"


@pytest.mark.slow
def test_a9_a_process_that_is_stopped_for_a_while_is_not_taken_for_hung(write_config, workdir):
    import os
    import signal

    env = {"use": "gymnasium", "id": "hanging:Hanging-v0", "kwargs": {"how": "never"}}
    (workdir / "hanging.py").write_text(HANGING)
    config = write_config(
        plugins={"files": ["hanging.py"]},
        run={"hang_after": 2, "total_frames": 60_000},
        env=env,
        checkpoint={"every": 10_000},
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "rlcore", "train", str(config), "--quiet"], stderr=subprocess.PIPE
    )
    status = Path("runs/tiny/status.json")
    while not status.exists() and process.poll() is None:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(5)
    os.kill(process.pid, signal.SIGCONT)
    _, err = process.communicate(timeout=80)
    assert process.returncode == 0, err


def broken(fault, at=20, **keys):
    return {"env": {"use": "testing:faulty", "fault": fault, "at": at, **keys}}


def frames_saved(run):
    return [entry.frames for entry in run.trainer.parts.store.entries()]


@pytest.mark.parametrize(
    ("row", "fault", "message"),
    [
        ("F1", "raise", "env 'toy' at step 4 of the batch that began at frame 32: RuntimeError: on purpose"),
        ("F7", "nan reward", "reward of env 0 at step 4 of the batch that began at frame 32 is nan"),
        ("F7", "inf reward", "reward of env 0 at step 4 of the batch that began at frame 32 is inf"),
        ("F7", "nan observation", "observation of env 0 at step 5 of the batch that began at frame 32 is nan"),
        ("F8", "wrong shape", "env 'toy' at step 4 of the batch that began at frame 32: ValueError"),
        ("F8", "wrong type", "env 'toy' at step 4 of the batch that began at frame 32: TypeError"),
    ],
)
def test_f1_f7_f8_what_cannot_be_trained_on_stops_the_run_before_it_reaches_the_learner(tmp_path, row, fault, message):
    run = make_run("checkpoint.every=16", folder=tmp_path, sections=broken(fault))
    with pytest.raises(EnvError, match=message):
        run.trainer.train()
    assert run.trainer.progress.frames == 32, row
    assert frames_saved(run)[-1] == 32
    whole = make_run("checkpoint.every=16", folder=tmp_path / "whole", sections=broken("none"))
    whole.trainer.train()
    resumed = make_run("checkpoint.every=16", folder=tmp_path, sections=broken(fault), resume=True)
    resumed.trainer.collector._env._fault = "none"  # the simulator was fixed
    resumed.trainer.train()
    models = [run.trainer.parts.store.entries()[-1].manifest["digests"]["model"] for run in (whole, resumed)]
    assert models[0] == models[1], "nothing of the discarded batch was trained on"


def test_f2_an_env_whose_reset_raises_at_the_start_is_refused_before_the_first_frame(tmp_path):
    run = make_run(folder=tmp_path, sections={**broken("reset raises", at=0), "evaluator": None})
    with pytest.raises(EnvError, match="env 'toy' in its reset of the batch that began at frame 0"):
        run.trainer.train()
    assert run.trainer.progress.frames == 0


@pytest.mark.parametrize("mode", ["same_step", "next_step"])
@pytest.mark.parametrize("end", ["terminated", "truncated"])
def test_f10_episodes_of_one_step_are_trained_on_and_counted(mode, end):
    keys = {"episode_lengths": [1], "ends": [end], "reset_mode": mode}
    run = make_run("run.total_frames=64", sections={"env": {"use": "testing:toy", **keys}})
    run.trainer.train()
    assert run.trainer.progress.episodes == run.trainer.progress.frames, "every step is an episode"
    assert all(value.isfinite().all() for value in run.trainer.model.state_dict().values())
