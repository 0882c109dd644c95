"""The table of what a program takes: every kind of leaf behind every transform, for one env and for several."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from rlcore_plugin_agents.agent import Agent
from rlcore_plugin_agents.exporting import export_agent
from rlcore_plugin_agents.program import Program, RememberingProgram, state_of
from rlcore_plugin_agents.program_agent import program_agent
from rlcore_plugin_testing import make_run

import rlcore
from rlcore.envs.spec_records import spec_record
from rlcore.errors import ConfigError
from rlcore.run.saved_parts import AgentParts
from rlcore.scripts.factory import Factory

from .test_export import trained

SINCE_1970 = 1_700_000_000
CPU = torch.device("cpu")


def box(name, shape=(2,)):
    kind = np.dtype(name)
    low, high = (-np.inf, np.inf) if kind.kind == "f" else (np.iinfo(kind).min, np.iinfo(kind).max)
    return Box(low, high, shape, kind.type)


ARRAYS = ("float32", "float64", "int64", "int32", "int16", "uint8", "uint16", "uint32", "uint64")
KINDS = {
    **{name: box(name) for name in ARRAYS},
    "discrete": Discrete(4, start=2),
    "choices": MultiDiscrete([2, 3]),
    "bits": MultiBinary(3),
    "dict": Dict({"array": box("float32"), "clock": box("int64"), "place": Discrete(4), "picture": box("uint8", (3,))}),
    "numbers": Dict({"array": box("int16"), "one": Discrete(3), "other": Discrete(4, start=1)}),
    "tuple": Tuple((box("float32", ()), MultiDiscrete([2, 3]), MultiBinary(2))),
}
NORMS = ("gymnasium:observation-norm", "transforms:running-observation-norm")
BEFORE = ("flatten", "frame-stack", "time-feature", "select", "double-to-float")
TRANSFORMS = [[], *([norm] for norm in NORMS), *([f"transforms:{use}"] for use in BEFORE)]
TRANSFORMS += [[f"transforms:{use}", norm] for use in BEFORE for norm in NORMS]
KEYS = {"transforms:select": {"indices": [1]}, "gymnasium:observation-norm": {"frames": 50}}


class Various(gymnasium.Env):
    """Observes random values of a kind; wide numbers are seconds of 2023."""

    action_space = Discrete(3)

    def __init__(self, kind):
        self.observation_space = KINDS[kind]

    def _value(self, space):
        if isinstance(space, Dict):
            return {name: self._value(part) for name, part in space.items()}
        if isinstance(space, Tuple):
            return tuple(self._value(part) for part in space)
        if isinstance(space, Box) and np.dtype(space.dtype).itemsize >= 4 and space.dtype != np.float32:
            return (SINCE_1970 + self.np_random.integers(2, size=space.shape)).astype(space.dtype)
        if isinstance(space, Box):
            return self.np_random.integers(100, 110, size=space.shape).astype(space.dtype)
        return space.sample()

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.left = 2 + int(self.np_random.integers(4))
        return self._value(self.observation_space), {}

    def step(self, action):
        self.left -= 1
        return self._value(self.observation_space), 0.0, not self.left, False, {}


gymnasium.register("Various-v0", Various)


def sections(kind, uses, leaf):
    on_leaf = {} if leaf is None else {"leaf": leaf}
    return {
        "env": {
            "use": "gymnasium",
            "id": "Various-v0",
            "num_envs": 4,
            "max_episode_steps": 10,
            "kwargs": {"kind": kind},
        },
        "transform": [{"use": use, **on_leaf, **KEYS.get(use, {})} for use in uses],
        "model": {"use": "mlp", "hidden": [8]},
    }


def agents(trainer):
    """Return the agent of a run, and the same as a program, which is not compiled."""
    spec = trainer.collector._env.spec
    parts = AgentParts(spec, trainer.transforms, trainer.model, CPU, None, defaultdict(str))
    notes = {"env": spec_record(spec), "frames": 0, **state_of(parts)}
    program = (RememberingProgram if "state" in notes else Program)(parts).eval()
    return Agent(spec, parts.transforms, parts.model.policy), program_agent(Path("p"), notes, program, CPU, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_program_acts_as_its_agent_on_what_the_env_gives(kind):
    compared = 0
    for leaf in [None, "array"] if kind in ("dict", "numbers") else [None]:
        for uses in TRANSFORMS:
            try:
                trainer = make_run(sections=sections(kind, uses, leaf)).trainer
            except ConfigError:  # such a transform takes no such leaf
                continue
            trainer.collector.collect()
            agent, program = agents(trainer)
            for num_envs in (1, 5):
                make = Factory(total_frames=96)
                env = make.env("gymnasium", id="Various-v0", num_envs=num_envs, kwargs={"kind": kind})
                observation = env.reset(seed=3)
                agent.reset()
                program.reset()
                for _ in range(12):
                    expected = agent.act(observation)
                    assert program.act(observation).tolist() == expected.tolist(), (uses, leaf, num_envs)
                    step = env.step(expected)
                    observation = step.observation
                    for each in (agent, program):
                        each.reset(step.terminated | step.truncated)
                compared += 1
    assert compared >= 4


@pytest.mark.parametrize("kind", ["numbers", pytest.param("dict", marks=pytest.mark.slow)])
def test_a_file_of_leaves_that_are_numbers_runs_for_one_env(tmp_path, kind):
    changed = sections(kind, ["transforms:flatten"], None)
    run = trained(tmp_path / "runs", **{**changed, "env": {**changed["env"], "num_envs": 2}})
    export_agent(run, "torch-export", tmp_path / "p.pt2")
    agent, loaded = rlcore.load_agent(run), rlcore.load_agent(tmp_path / "p.pt2")
    for count in (1, 2, 9):
        rows = np.stack([agent.observation_space.sample() for _ in range(count)])
        assert loaded.act(rows).tolist() == agent.act(rows).tolist()
    assert loaded.act(rows[0]) == agent.act(rows[0])


ROUNDING = """
from rlcore import Component, hookimpl
from rlcore_plugin_transforms.observation_norm import RunningObservationNorm
from torch import nn

class Rounding(RunningObservationNorm):
    def observation_module(self):
        exact = super().observation_module()
        module = nn.Module()
        module.forward = lambda observation: exact(observation.float())
        return module

@hookimpl
def provide_components():
    return [Component("transform", "rounding", Rounding)]
"""


def test_a_program_that_acts_otherwise_where_the_env_is_is_not_kept(tmp_path):
    (tmp_path / "rounding.py").write_text(ROUNDING)
    changed = sections("int64", ["rounding:rounding"], None)
    run = trained(tmp_path, **changed, plugins={"files": ["rounding.py"]})
    with pytest.raises(ConfigError, match="acts otherwise than the agent"):
        export_agent(run, "torch-export", tmp_path / "p.pt2")
    assert not list(tmp_path.glob("*.pt2"))


def test_an_env_that_cannot_be_played_is_named_and_does_without(tmp_path, monkeypatch, caplog):
    run = trained(tmp_path, **sections("float32", NORMS[1:], None))
    monkeypatch.setattr(Various, "reset", lambda env, **_: exit("no simulator"))
    export_agent(run, "torch-export", tmp_path / "p.pt2")
    assert "env 'Various-v0' cannot be played here" in caplog.text
    assert "no simulator" in caplog.text
