"""Agents of trained runs: raw observations in, the env's actions out, and the same returns as an evaluation."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import tomli_w

import rlcore

RUN = Path("runs/tiny")
EVALUATED = {"evaluator": {"use": "episodes", "episodes": 2, "num_envs": 1, "every": 64}}
PENDULUM = {"env": {"use": "gymnasium", "id": "Pendulum-v1"}, **EVALUATED}
DQN = {
    "model": {"use": "dqn:q-network", "hidden": [8]},
    "loss": {"use": "dqn"},
    "estimator": None,
    "buffer": {"use": "replay", "capacity": 64, "minibatch_size": 8, "warmup_frames": 16},
    **EVALUATED,
}
KINDS = {
    "ppo discrete": EVALUATED,
    "ppo continuous": {**PENDULUM, "transform": [{"use": "observation-norm", "frames": 50}]},
    "dqn": DQN,
    "running norm": {**PENDULUM, "transform": [{"use": "transforms:running-observation-norm"}]},
    "memory": {
        **PENDULUM,
        "transform": [
            {"use": "observation-norm", "frames": 50},
            {"use": "transforms:frame-stack", "frames": 3},
            {"use": "transforms:time-feature"},
            {"use": "transforms:action-scale"},
        ],
    },
    "clipped": {**PENDULUM, "transform": [{"use": "transforms:action-clip"}, {"use": "transforms:reward-norm"}]},
    "skipping": {"env": {"use": "gymnasium", "id": "CartPole-v1", "frame_skip": 2}, **EVALUATED},
}


@pytest.fixture
def train(cli, write_config):
    def make(**sections):
        path = write_config(**{name: None if name == "buffer" else value for name, value in sections.items()})
        if "buffer" in sections:  # in the place of the tiny run's keys, not among them
            path.write_text(tomli_w.dumps(tomllib.loads(path.read_text()) | {"buffer": sections["buffer"]}))
        outcome = cli("train", path, "--quiet")
        assert outcome.code == 0, outcome.err
        return RUN

    return make


def returns_of(agent, env_id, seeds):
    """Play one episode for each seed, as a user would."""
    env = gymnasium.make(env_id)
    returns = []
    for seed in seeds:
        observation, _ = env.reset(seed=seed)
        agent.reset()
        total, over = 0.0, False
        while not over:
            action = agent.act(observation)
            assert env.action_space.contains(action)
            for _ in range(agent.frame_skip):
                observation, reward, terminated, truncated, _ = env.step(action)
                total += float(reward)
                over = terminated or truncated
                if over:
                    break
        returns.append(total)
    env.close()
    return returns


@pytest.mark.parametrize("kind", KINDS)
def test_an_agent_returns_what_evaluate_does(cli, train, kind):
    run = train(**KINDS[kind])
    evaluated = json.loads(cli("evaluate", run, "--json").out)["data"]
    agent = rlcore.load_agent(run)
    assert agent.frames == evaluated["frames"] == 96
    assert returns_of(agent, agent.env_id, evaluated["seeds"]) == pytest.approx(evaluated["returns"], rel=1e-5)


def test_nothing_of_the_training_is_built(train, monkeypatch):
    run = train(**KINDS["memory"])
    for name in ("rlcore_plugin_gymnasium.env", "rlcore_plugin_ppo.loss", "rlcore_plugin_rollout.local"):
        monkeypatch.setitem(sys.modules, name, None)  # an import of it fails
    assert rlcore.load_agent(str(run)).act(np.zeros(3)).shape == (1,)


def test_the_best_checkpoint_and_one_by_its_folder(cli, train):
    run = train(**EVALUATED)
    best = json.loads(cli("evaluate", run, "--best", "--json").out)["data"]["frames"]
    assert rlcore.load_agent(run, best=True).frames == best
    for checkpoint in run.glob("checkpoints/*/"):
        frames = int(checkpoint.name.split("-")[0])
        assert rlcore.load_agent(checkpoint).frames == frames
    assert rlcore.load_agent(run / "checkpoints").frames == 96
    with pytest.raises(rlcore.ConfigError, match="is one of them"):
        rlcore.load_agent(checkpoint, best=True)


def test_what_cannot_be_loaded_is_one_clear_error(train, write_config, workdir):
    with pytest.raises(rlcore.ConfigError, match="there is no run folder or checkpoint 'runs/none'"):
        rlcore.load_agent("runs/none")
    with pytest.raises(rlcore.ConfigError, match="is not a run folder"):
        rlcore.load_agent(workdir)
    run = train()
    with pytest.raises(rlcore.StorageError, match="none is the best"):
        rlcore.load_agent(run, best=True)
    with pytest.raises(rlcore.ConfigError, match="device"):
        rlcore.load_agent(run, device="abacus")
    for checkpoint in run.glob("checkpoints/*-*"):
        checkpoint.rename(workdir / checkpoint.name)
    with pytest.raises(rlcore.StorageError, match="has no checkpoint yet"):
        rlcore.load_agent(run)


def test_a_model_whose_plugin_is_not_installed_is_named(train, monkeypatch):
    run = train(**EVALUATED)
    installed = rlcore.plugins.discovery.installed
    monkeypatch.setattr(
        "rlcore.plugins.host.installed", lambda: [plugin for plugin in installed() if plugin.name != "mlp"]
    )
    with pytest.raises(rlcore.PluginError, match="pip install rlcore-plugin-mlp"):
        rlcore.load_agent(run)


LEARNS = """
from rlcore import Component, hookimpl
from rlcore.envs import PassThrough
from pydantic import BaseModel

class Largest(PassThrough):
    class Config(BaseModel):
        pass
    def __init__(self, config, context):
        pass
    def fit(self, env):
        self.largest = abs(env.reset(seed=0)).max()
    def step(self, observation, first):
        return observation / self.largest

@hookimpl
def provide_components():
    return [Component("transform", "largest", Largest)]
"""


def test_a_transform_that_does_not_save_what_it_learnt_is_named(train, workdir):
    (workdir / "scale.py").write_text(LEARNS)
    run = train(plugins={"files": ["scale.py"]}, transform=[{"use": "scale:largest"}])
    with pytest.raises(rlcore.ConfigError, match=r"'largest'.*no state_dict"):
        rlcore.load_agent(run)


def test_load_weights_takes_the_folder_of_a_run_too(train, build):
    run = train(**EVALUATED)
    assert build(**EVALUATED).load_weights(run) == build(**EVALUATED).load_weights(run / "checkpoints") == 96
