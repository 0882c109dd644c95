"""Observations of every kind of number train, evaluate and resume as floats do: they are cast once, in the model."""

import gymnasium
import numpy as np
import pytest
import torch
from rlcore_plugin_testing import make_run

KINDS = [
    "float32",
    "float64",
    "float16",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint16",
    "uint32",
    "uint64",
    "bool",
]


class Counting(gymnasium.Env):
    """Observes its own bits, in a dtype of choice."""

    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, dtype):
        self.observation_space = gymnasium.spaces.Box(0, 1, (4,), np.dtype(dtype).type)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = self.np_random.integers(2, size=4)
        return self.state.astype(self.observation_space.dtype), {}

    def step(self, action):
        reward = float(self.state[0] == action)
        self.state = self.np_random.integers(2, size=4)
        return self.state.astype(self.observation_space.dtype), reward, bool(self.np_random.random() < 0.2), False, {}


@pytest.fixture(autouse=True)
def registered():
    gymnasium.register("Counting-v0", Counting, max_episode_steps=10)
    yield
    gymnasium.registry.pop("Counting-v0")


def env(dtype, **keys):
    return {"use": "gymnasium", "id": "Counting-v0", "num_envs": 2, "kwargs": {"dtype": dtype}, **keys}


PPO = {"model": {"use": "mlp"}, "loss": {"use": "ppo"}, "estimator": {"use": "gae"}}
DQN = {
    "model": {"use": "dqn:q-network", "hidden": [8]},
    "loss": {"use": "dqn"},
    "estimator": [],
    "buffer": {"use": "replay", "n_steps": 2, "minibatch_size": 8, "warmup_frames": 16},
}
TOY = {"model": {"use": "testing:toy"}}


def trained(dtype, sections):
    trainer = make_run(sections={"env": env(dtype), **sections}).trainer
    trainer.train()
    return trainer.parts.model.state_dict()


@pytest.mark.parametrize("sections", [PPO, DQN, TOY], ids=["ppo", "dqn", "toy"])
@pytest.mark.parametrize("dtype", KINDS)
def test_the_same_numbers_in_another_dtype_give_the_same_weights(dtype, sections):
    found, expected = trained(dtype, sections), trained("float32", sections)
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=0, atol=0, msg=name)


@pytest.mark.parametrize(
    "transform",
    [
        {"use": "gymnasium:observation-norm", "frames": 10},
        {"use": "transforms:running-observation-norm"},
        {"use": "transforms:frame-stack", "frames": 2},
        {"use": "transforms:time-feature"},
        {"use": "transforms:double-to-float"},
    ],
    ids=lambda transform: transform["use"],
)
@pytest.mark.parametrize("dtype", ["float16", "uint8", "int64", "bool"])
def test_every_transform_takes_them(dtype, transform):
    trained(dtype, {**PPO, "transform": [transform]})


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float16", "uint32"])
def test_they_resume_exactly(tmp_path, dtype):
    sections = {"env": env(dtype), **DQN}
    whole = make_run(sections=sections, folder=tmp_path / "whole")
    whole.trainer.train()
    first = make_run(sections=sections, folder=tmp_path / "split")
    first.trainer.stop_at = 32
    first.trainer.train()
    second = make_run(sections=sections, folder=tmp_path / "split", resume=True)
    second.trainer.train()
    digests = [run.trainer.parts.store.entries()[-1].manifest["digests"] for run in (whole, second)]
    parts = ("model", "optimizer.adam", "buffer", "collector", "progress")
    assert [digests[0][name] for name in parts] == [digests[1][name] for name in parts]


def test_small_integers_stay_small_in_batches_and_replay():
    trainer = make_run(sections={"env": env("uint8"), **PPO}).trainer
    assert trainer.collector.collect()["observation"].dtype == torch.uint8
