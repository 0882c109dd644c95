"""An env of which one instance may be open at a time, such as a simulator behind a port, through the commands."""

from __future__ import annotations

import os

import pytest

MODULE = """
import os
import socket
import gymnasium as gym
import numpy as np


class Single(gym.Env):
    observation_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)
    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}

    def __init__(self, render_mode=None):
        self.render_mode = render_mode
        self.port = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.port.bind("\\0" + os.environ["SINGLE"])
        except OSError:
            self.port.close()
            self.log("refused")
            raise RuntimeError("the simulator is in use") from None
        self.log("opened")

    def log(self, what):
        with open(os.environ["SINGLE_LOG"], "a") as file:
            file.write(what + "\\n")

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.seen(), {}

    def seen(self):
        return self.np_random.uniform(-1, 1, 2).astype(np.float32)

    def step(self, action):
        self.time += 1
        return self.seen(), float(action), self.time >= 20, False, {}

    def render(self):
        return np.zeros((32, 32, 3), np.uint8)

    def close(self):
        self.port.close()


gym.register("Single-v0", Single)
"""
ENV = {"use": "gymnasium", "id": "single_env:Single-v0", "num_envs": 1}


@pytest.fixture
def refused(workdir, monkeypatch):
    """Write the env's module; return what says how often an instance was refused since it was last asked."""
    (workdir / "single_env.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(workdir))
    monkeypatch.setenv("SINGLE", f"single-{os.getpid()}-{workdir.name}")
    log = workdir / "instances.log"
    monkeypatch.setenv("SINGLE_LOG", str(log))

    def count() -> int:
        lines = log.read_text().split()
        log.write_text("")
        assert "opened" in lines
        return lines.count("refused")

    return count


def test_no_command_opens_a_second_instance(cli, write_config, refused):
    path = write_config(env={**ENV, "try_out": False}, transform=[{"use": "transforms:flatten"}], evaluator=None)
    for arguments in (
        ("env", "check", "--config", path, "--steps", "30"),
        ("config", "check", path),
        ("plugins", "order", path),
        ("train", path, "--dry-run"),
        ("train", path),
        ("train", "--resume", "runs/tiny", "--set", "run.total_frames=512"),
        ("evaluate", "runs/tiny", "--episodes", "3"),
        ("watch", "runs/tiny", "--video", "watched.mp4", "--episodes", "2"),
        ("data", "record", "runs/tiny", "--episodes", "3", "--out", "recorded"),
        ("data", "record", path, "--episodes", "3", "--out", "untrained"),
    ):
        outcome = cli(*map(str, arguments))
        assert outcome.code == 0, (arguments, outcome.err)
        assert refused() == 0, arguments
    assert cli("export", "runs/tiny", "--format", "safetensors").code == 0


def test_a_trial_that_is_refused_an_instance_ends_nothing(cli, write_config, refused):
    path = write_config(env=ENV, evaluator=None)
    outcome = cli("train", path)
    assert outcome.code == 0
    reason = "was not tried out: making another instance beside those of the run fails"
    assert reason in outcome.err
    assert refused() == 1, "no further way is tried out where no instance can be made"
    checked = cli("env", "check", "--config", path, "--steps", "30")
    assert checked.code == 0
    assert reason in checked.out


def test_a_second_env_that_was_asked_for_is_named(cli, write_config, refused):
    outcome = cli("train", write_config(env={**ENV, "num_envs": 3}))
    assert outcome.code == 3
    assert "1 can be made, and one more beside them cannot: RuntimeError: the simulator is in use" in outcome.err
    assert "set num_envs = 1 in [env]" in outcome.err


def test_what_cannot_be_built_leaves_no_env_open(cli, write_config, refused):
    path = write_config(env={**ENV, "try_out": False}, evaluator=None, loss={"use": "ppo", "clip_epsilonn": 1})
    assert cli("train", path).code == 2
    path = write_config(env={**ENV, "try_out": False}, evaluator=None, loss={"use": "discrete-sac"})
    assert cli("train", path).code == 2
    path = write_config(env={**ENV, "try_out": False}, evaluator=None)
    assert cli("train", path).code == 0
    assert refused() == 0
    assert os.path.isdir("runs/tiny")
