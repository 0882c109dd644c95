"""Exported policies: what comes out of a file is what the agent of the run does, with the normalisation inside."""

from __future__ import annotations

import builtins
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import tomli_w
import torch
from rlcore_plugin_agents.commands import export
from rlcore_plugin_agents.exporting import export_agent
from rlcore_plugin_agents.formats import FORMATS

import rlcore
from rlcore.scripts.factory import Factory
from tests.conftest import TINY

NEEDS = {"torch-export": "torch", "onnx": "onnxruntime", "safetensors": "safetensors"}
PENDULUM = {"env": {"use": "gymnasium", "id": "Pendulum-v1"}}
NORM = {"use": "observation-norm", "frames": 50}
DQN = {
    "model": {"use": "dqn:q-network", "hidden": [8]},
    "loss": {"use": "dqn"},
    "buffer": {"use": "replay", "capacity": 64, "minibatch_size": 8, "warmup_frames": 16},
}


def trained(folder, **sections):
    """Train the tiny run with other sections; return its folder."""
    values = {**TINY, **sections, "run": {**TINY["run"], "folder": str(folder)}}
    if "loss" in sections:
        del values["estimator"]
    folder.mkdir(exist_ok=True)
    (folder / "tiny.toml").write_text(tomli_w.dumps(values))
    rlcore.build(rlcore.load_config(folder / "tiny.toml")).trainer.train()
    return folder / "tiny"


@pytest.fixture(scope="module")
def pendulum(tmp_path_factory):
    return trained(
        tmp_path_factory.mktemp("pendulum"), **PENDULUM, transform=[NORM, {"use": "transforms:action-scale"}]
    )


@pytest.fixture(scope="module")
def with_memory(tmp_path_factory):
    transforms = [{"use": "transforms:running-observation-norm"}, {"use": "transforms:frame-stack", "frames": 2}]
    return trained(tmp_path_factory.mktemp("memory"), **PENDULUM, transform=transforms)


@pytest.fixture(scope="module")
def remembering(tmp_path_factory):
    return trained(
        tmp_path_factory.mktemp("remembering"),
        transform=[{"use": "transforms:running-observation-norm"}],
        model={"use": "recurrent:lstm", "size": 8, "encoder_hidden": [8]},
        buffer={"use": "rollout-sequences", "sequence_length": 8, "minibatch_size": 16, "epochs": 1},
    )


def raw_observations(count, size):
    return np.random.default_rng(3).normal(size=(count, size)).astype(np.float32)


def exported(run, format, file):
    pytest.importorskip(NEEDS[format])
    return export_agent(run, format, file)


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_acts_as_the_agent_does(pendulum, tmp_path, format):
    agent = rlcore.load_agent(pendulum)
    loaded = rlcore.load_agent(exported(pendulum, format, tmp_path / f"policy{FORMATS[format].suffix}"))
    for count in (1, 2, 500):
        observations = raw_observations(count, 3)
        np.testing.assert_allclose(loaded.act(observations), agent.act(observations), rtol=1e-5, atol=1e-5)
    assert loaded.act(observations[0]).shape == (1,)
    assert (loaded.frames, loaded.frame_skip, loaded.env_id) == (96, 1, "Pendulum-v1")
    assert (loaded.observation_space, loaded.action_space) == (agent.observation_space, agent.action_space)
    if format == "safetensors":
        assert loaded.act(observations[0], deterministic=False).shape == (1,)
    else:
        with pytest.raises(rlcore.ConfigError, match="the likeliest action alone"):
            loaded.act(observations[0], deterministic=False)


def test_a_program_runs_without_rlcore(pendulum, tmp_path):
    export_agent(pendulum, "torch-export", tmp_path / "p.pt2")
    observations = raw_observations(7, 3)
    actions = torch.export.load(tmp_path / "p.pt2").module()(torch.from_numpy(observations))
    np.testing.assert_allclose(actions.detach().numpy(), rlcore.load_agent(pendulum).act(observations), atol=1e-5)


def acts_alike(one, other, size):
    """Let both act for some steps, with the beginning of an episode in one env among them."""
    for step in range(6):
        observations = raw_observations(6 * 5, size)[5 * step : 5 * step + 5]
        np.testing.assert_allclose(one.act(observations), other.act(observations), rtol=1e-5, atol=1e-5)
        for agent in (one, other):
            agent.reset(np.arange(5) == step)


@pytest.mark.parametrize("format", FORMATS)
def test_a_policy_with_a_state_is_exported_with_it(remembering, tmp_path, format):
    agent = rlcore.load_agent(remembering)
    loaded = rlcore.load_agent(exported(remembering, format, tmp_path / f"policy{FORMATS[format].suffix}"))
    assert loaded.remembers
    acts_alike(agent, loaded, 4)


def test_a_program_with_a_state_runs_without_rlcore_and_says_of_which_shape_it_is(remembering, tmp_path):
    file, notes = tmp_path / "p.pt2", {"rlcore.json": ""}
    export_agent(remembering, "torch-export", file)
    program = torch.export.load(file, extra_files=notes)
    agent, act = rlcore.load_agent(remembering), program.module()
    (size,) = json.loads(notes["rlcore.json"])["state"]
    state, first = torch.full((3, size), 7.0), torch.ones(3, dtype=torch.bool)  # what stands there does not matter
    for row in torch.from_numpy(raw_observations(12, 4)).view(4, 3, 4):
        action, state = act(row, state, first)
        assert action.tolist() == agent.act(row.numpy()).tolist()
        first = torch.zeros(3, dtype=torch.bool)
    changed = json.dumps({**json.loads(notes["rlcore.json"]), "state": [-1]})
    torch.export.save(program, file, extra_files={"rlcore.json": changed})
    with pytest.raises(rlcore.StorageError, match=r"state of its policy is no shape: \[-1\]"):
        rlcore.load_agent(file, trust=True)


def test_observations_that_are_dicts_go_into_a_program_by_leaf(tmp_path):
    env = {"use": "testing:toy-dict"}
    run = trained(tmp_path / "runs", env=env)
    agent = rlcore.load_agent(run)
    export_agent(run, "torch-export", tmp_path / "p.pt2")
    rows = np.stack([agent.observation_space.sample() for _ in range(5)])
    expected = agent.act(rows)
    np.testing.assert_allclose(rlcore.load_agent(tmp_path / "p.pt2").act(rows), expected, atol=1e-5)
    leaves = {name: torch.from_numpy(leaf.copy()) for name, leaf in agent.observation_space.arrays(rows).items()}
    actions = torch.export.load(tmp_path / "p.pt2").module()(leaves)
    np.testing.assert_allclose(actions.detach().numpy(), expected, atol=1e-5)
    with pytest.raises(rlcore.ConfigError, match="observations that are dicts, which the format onnx cannot take"):
        export_agent(run, "onnx", tmp_path / "p.onnx")


R2D2 = {
    "model": {"use": "dqn:recurrent-q-network", "cell": "gru", "layers": 2, "size": 8, "encoder_hidden": []},
    "loss": {"use": "dqn:r2d2"},
    "buffer": {
        "use": "replay:sequences",
        "capacity": 128,
        "minibatch_size": 2,
        "sequence_length": 4,
        "burn_in": 2,
        "warmup_frames": 32,
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
def test_values_behind_two_layers_with_a_state_are_exported(tmp_path, format):
    run = trained(tmp_path / "runs", **R2D2)
    loaded = rlcore.load_agent(exported(run, format, tmp_path / f"policy{FORMATS[format].suffix}"))
    acts_alike(rlcore.load_agent(run), loaded, 4)


OTHERS = {
    "dqn": (DQN, 4),
    "discrete": ({"transform": [{"use": "transforms:running-observation-norm"}, {"use": "transforms:reward-norm"}]}, 4),
    "clipped": ({**PENDULUM, "transform": [NORM, {"use": "transforms:action-clip"}]}, 3),
}


# each kind, and each format: which of them a policy goes into does not depend on its kind
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "format"),
    [("dqn", "onnx"), ("discrete", "torch-export"), ("discrete", "safetensors"), ("clipped", "onnx")],
)
def test_other_models_and_transforms_are_exported(tmp_path, kind, format):
    sections, size = OTHERS[kind]
    run = trained(tmp_path / "runs", **sections)
    loaded = rlcore.load_agent(exported(run, format, tmp_path / f"policy{FORMATS[format].suffix}"))
    observations = raw_observations(200, size)
    np.testing.assert_allclose(loaded.act(observations), rlcore.load_agent(run).act(observations), rtol=1e-5, atol=1e-5)


def played(agent, env, episodes):
    """Return the actions of an agent through episodes of envs, each of which begins with a seed of its own."""
    taken = []
    for seed in range(episodes):
        observation, over = env.reset(seed=seed), np.zeros(env.spec.num_envs, dtype=bool)
        agent.reset()
        while not over.all():
            taken.append(agent.act(observation))
            step = env.step(taken[-1])
            observation, ended = step.observation, step.terminated | step.truncated
            agent.reset(ended)
            over |= ended
    return taken


LEAVES = {"env": {"use": "testing:toy-dict", "num_envs": 2}}
# agents whose programs have other parts than those above: transforms of leaves, with memory and without
PARTS = {
    "leaf": {**LEAVES, "transform": [{"use": "transforms:running-observation-norm", "leaf": "state"}]},
    "flat": {
        **LEAVES,
        "transform": [{"use": "transforms:select", "leaf": "state", "indices": [0, 2]}, {"use": "flatten"}],
    },
    "stack-of-a-leaf": {
        **LEAVES,
        "transform": [
            {"use": "transforms:frame-stack", "leaf": "frame", "frames": 3},
            {"use": "transforms:time-feature", "leaf": "state"},
        ],
    },
    "stack": {
        "env": {"use": "testing:toy", "num_envs": 2},
        "transform": [{"use": "transforms:running-observation-norm"}, {"use": "transforms:frame-stack", "frames": 2}],
    },
    "stack-and-memory": {
        "env": {"use": "testing:toy", "num_envs": 2},
        "transform": [{"use": "transforms:frame-stack"}, {"use": "transforms:time-feature"}],
        "model": {"use": "recurrent:gru", "size": 8, "encoder_hidden": [8]},
        "buffer": {"use": "rollout-sequences", "sequence_length": 8, "minibatch_size": 16, "epochs": 1},
    },
}


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] if kind in ("flat", "stack") else []) for kind in PARTS]
)
def test_transforms_of_leaves_and_with_a_memory_are_exported(tmp_path, kind):
    run = trained(tmp_path / "runs", **PARTS[kind])
    use, num_envs = PARTS[kind]["env"]["use"], PARTS[kind]["env"]["num_envs"]
    env = Factory(total_frames=96).env(use, num_envs=num_envs)
    agent = rlcore.load_agent(run)
    expected = played(agent, env, episodes=4)
    assert len(expected) > 12
    for format in ("torch-export", "onnx"):
        file = tmp_path / f"policy{FORMATS[format].suffix}"
        if format == "onnx" and use == "testing:toy-dict":
            continue  # which it refuses
        loaded = rlcore.load_agent(exported(run, format, file))
        assert loaded.remembers == agent.remembers == ("stack" in kind)
        found = played(loaded, env, episodes=4)
        assert len(found) == len(expected)
        for mine, own in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine, own, rtol=1e-5, atol=1e-5)


def test_a_stack_is_the_state_of_a_program(with_memory, tmp_path):
    file, notes = tmp_path / "p.pt2", {"rlcore.json": ""}
    export_agent(with_memory, "torch-export", file)
    program, agent = torch.export.load(file, extra_files=notes).module(), rlcore.load_agent(with_memory)
    assert json.loads(notes["rlcore.json"])["state"] == [2, 3]
    state, first = torch.full((4, 2, 3), torch.nan), torch.ones(4, dtype=torch.bool)
    for row in torch.from_numpy(raw_observations(12, 3)).view(3, 4, 3):
        action, state = program(row, state, first)
        np.testing.assert_allclose(action.detach().numpy(), agent.act(row.numpy()), atol=1e-5)
        first = torch.zeros(4, dtype=torch.bool)


def test_a_transform_that_no_program_can_have_is_named_and_goes_into_safetensors(tmp_path):
    run = trained(tmp_path / "runs", **PENDULUM, transform=[{"use": "transforms:last-step"}])
    with pytest.raises(rlcore.ConfigError, match=r"transform 'last-step' .*cannot be exported"):
        export_agent(run, "torch-export", tmp_path / "p.pt2")
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
    agent = rlcore.load_agent(run)
    loaded = rlcore.load_agent(exported(run, "safetensors", tmp_path / "p.safetensors"))
    for reward, observation in enumerate(raw_observations(3, 3)):
        assert loaded.act(observation, reward=reward) == pytest.approx(agent.act(observation, reward=reward))


MODEL = """
import torch
from rlcore import Component, hookimpl
from rlcore_plugin_mlp.model import MLPModel

class Branching(MLPModel):
    def __init__(self, config, context):
        super().__init__(config, context)
        mode = self.policy.mode
        self.policy.mode = lambda seen: mode(seen) if seen.sum().item() > 1e9 else mode(seen)

@hookimpl
def provide_components():
    return [Component("model", "branching", Branching)]
"""


def test_a_model_that_cannot_be_followed_is_named(tmp_path):
    (tmp_path / "branching.py").write_text(MODEL)
    run = trained(tmp_path, plugins={"files": ["branching.py"]}, model={"use": "branching:branching", "hidden": [8]})
    with pytest.raises(rlcore.ConfigError, match=r"model 'branching' .*cannot be exported"):
        export_agent(run, "torch-export", tmp_path / "p.pt2")


def test_export_prints_the_file_and_never_overwrites(cli, with_memory, tmp_path):
    pytest.importorskip("safetensors")
    run = tmp_path / "copy"
    shutil.copytree(with_memory, run)
    outcome = cli("export", run, "--format", "safetensors")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith(f"{run / 'policy.safetensors'}: ")
    before = (run / "policy.safetensors").stat().st_mtime_ns
    again = cli("export", run, "--format", "safetensors")
    assert again.code == 2
    assert "exists already" in again.err
    assert (run / "policy.safetensors").stat().st_mtime_ns == before
    assert cli("export", run, "--format", "safetensors", "--overwrite").code == 0
    assert "has the suffix .onnx" in cli("export", run, "--format", "onnx", "--output", "policy.pt2").err
    checkpoint = next(run.glob("checkpoints/*-*"))
    assert "say where with --output" in cli("export", checkpoint, "--format", "safetensors").err
    assert "none is the best" in cli("export", run, "--format", "safetensors", "--best", "--overwrite").err


@pytest.mark.parametrize(("format", "package"), [("onnx", "onnxscript"), ("safetensors", "safetensors.torch")])
def test_a_package_that_is_missing_is_named_with_its_extra(with_memory, tmp_path, monkeypatch, format, package):
    there = builtins.__import__

    def without(name, *rest):
        if name == package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return there(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(rlcore.PluginError, match=rf"pip install 'rlcore\[{format}\]'"):
        export_agent(with_memory, format, tmp_path / f"p{FORMATS[format].suffix}")


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_of_something_else_is_refused(tmp_path, format):
    pytest.importorskip(NEEDS[format])
    file = tmp_path / f"p{FORMATS[format].suffix}"
    file.write_bytes(b"nonsense")
    with pytest.raises(rlcore.StorageError, match="cannot be read as"):
        rlcore.load_agent(file, trust=True)


def test_a_file_of_other_weights_is_refused(with_memory, tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    safetensors.save_file({"a": torch.zeros(1)}, tmp_path / "a.safetensors")
    with pytest.raises(rlcore.StorageError, match="was not written by rlcore export"):
        rlcore.load_agent(tmp_path / "a.safetensors")
    (tmp_path / "a.txt").write_text("")
    with pytest.raises(rlcore.ConfigError, match=r"suffixes \.pt2, \.onnx, \.safetensors"):
        rlcore.load_agent(tmp_path / "a.txt")
    file = export_agent(with_memory, "safetensors", tmp_path / "b.safetensors")
    with pytest.raises(rlcore.ConfigError, match="is one exported file"):
        rlcore.load_agent(file, best=True)


def test_the_command_line_knows_every_format():
    assert tuple(FORMATS) == export.FORMATS


def test_the_metadata_of_safetensors_say_what_the_weights_are(with_memory, tmp_path):
    safetensors = pytest.importorskip("safetensors")
    file = export_agent(with_memory, "safetensors", tmp_path / "p.safetensors")
    with safetensors.safe_open(file, "pt") as stream:
        notes = json.loads(stream.metadata()["rlcore"])
        assert stream.get_tensor("model/actor.network.layers.0.weight").shape == (8, 6)
        assert stream.get_tensor("transform.running-observation-norm/mean").shape == (3,)
    assert notes["env"]["observation_space"]["shape"] == [3]
    assert notes["config"]["model"]["hidden"] == [8]
    assert Path(notes["config"]["run"]["name"]).name == "tiny"
