"""Envs of envpool, where it is installed; where it is not, the error says what brings it."""

import sys
from importlib.util import find_spec

import numpy as np
import pytest
from rlcore_plugin_envpool.env import Config, EnvpoolEnv

from rlcore.errors import ConfigError
from rlcore.types import Context

needs_envpool = pytest.mark.skipif(find_spec("envpool") is None, reason="envpool is not installed")


def made(**keys):
    return EnvpoolEnv(Config(**keys), Context.alone("tests"))


def test_without_envpool_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "envpool", None)
    with pytest.raises(ConfigError, match=r"use = 'envpool' needs envpool, .*pip install 'rlcore\[envpool\]'"):
        made(id="CartPole-v1")


@needs_envpool
def test_an_unknown_task_or_argument_is_refused():
    with pytest.raises(ConfigError, match="no such task"):
        made(id="CartPol-v1")
    with pytest.raises(ConfigError, match=r"cannot be made by envpool: .*nowhere"):
        made(id="CartPole-v1", kwargs={"nowhere": 1})


@needs_envpool
def test_atari_counts_the_frames_of_the_emulator():
    env = made(id="Pong-v5", num_envs=2, threads=1)
    assert (env.spec.frame_skip, env.spec.observation_space.shape) == (4, (4, 84, 84))
    env.reset(seed=1)
    step = env.step(np.zeros(2, np.int64))
    assert step.observation.dtype == np.uint8
    assert step.reward.dtype == np.float64


@needs_envpool
def test_the_numbers_among_the_infos_of_every_step_are_told():
    env, told = made(id="CartPole-v1", num_envs=2, threads=1, max_episode_steps=3), []
    env.tell_infos(lambda index, infos, first: told.append((index, infos["elapsed_step"], first)))
    env.reset(seed=1)
    for _ in range(4):
        env.step(np.zeros(2, np.int64))
    steps = [(0, True), (1, False), (2, False), (3, False), (0, True)]
    assert told == [(index, elapsed, first) for elapsed, first in steps for index in range(2)]
