"""Runs on datasets, from recording to exact resumes, and the losses beside other ways to compute them."""

import itertools
import math
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
import tomli_w
import torch
from rlcore_plugin_datasets.dataset import Dataset, write_dataset
from rlcore_plugin_datasets.recording import played
from rlcore_plugin_offline.iql import IQLLoss
from rlcore_plugin_testing import check_resumed, make_trainer
from rlcore_plugin_testing.contracts import LossContract
from rlcore_plugin_testing.small_run import make_run

from rlcore.checkpoints.manifest import read_manifest
from rlcore.cli import command_line

from .test_contracts import DETERMINISTIC, DISCRETE, IQL, STOCHASTIC

ACTORS = {"use": "adam", "name": "actor", "parameters": ["actor"], "losses": ["loss_actor"], "every": 2}
CRITICS = {"use": "adam", "name": "critics", "parameters": ["critics"], "losses": ["loss_critics"]}
ADAM = [{"use": "adam", "lr": 1e-2}]
VALUES = {"parameters": ["critics", "value"], "losses": ["loss_critics", "loss_value"]}
FOLLOWING = [{**CRITICS, **VALUES, "lr": 1e-2}, {**ACTORS, "parameters": ["actor", "spread"], "lr": 1e-2, "every": 1}]
CLONING = {"model": {"use": "mlp", "hidden": [8]}, "optimizer": [{"use": "adam", "parameters": ["actor"]}]}
RUNS = {
    "bc": {**CLONING, "loss": {"use": "offline:bc"}},
    "td3-bc": {**DETERMINISTIC, "loss": {"use": "offline:td3-bc"}, "optimizer": [CRITICS, ACTORS]},
    "iql": {**IQL, "optimizer": ADAM},
    "iql-in-turn": {**IQL, "loss": {"use": "offline:iql", "in_turn": True}, "optimizer": FOLLOWING},
    "cql": {**STOCHASTIC, "loss": {"use": "offline:cql", "conservative_samples": 2}, "optimizer": ADAM},
    "discrete-cql": {**DISCRETE, "loss": {"use": "offline:discrete-cql"}, "optimizer": ADAM},
    "mixed": {**IQL, "optimizer": ADAM},
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Random episodes of the toy env, by its actions."""
    from rlcore_plugin_testing.toy import ToyEnv

    folder = tmp_path_factory.mktemp("data")
    for actions in ("bounded", "discrete"):
        env = ToyEnv(ToyEnv.Config(num_envs=1, actions=actions, reward="aim" if actions == "bounded" else "count"))
        space = env.spec.action_space
        space.seed(0)
        episodes = played(env, lambda _, s=space: np.asarray(s.sample())[np.newaxis], lambda: None, range(20), 100)
        write_dataset(folder / actions, (env.spec.observation_space, space), episodes, {})
    return folder


def sections_of(name, data):
    actions = "discrete" if name == "discrete-cql" else "bounded"
    buffer = {"use": "datasets:dataset", "path": str(data / actions), "minibatch_size": 16, "updates_per_iteration": 8}
    if name == "mixed":
        buffer |= {"use": "datasets:mixed", "offline_updates": 12, "offline_updates_per_batch": 8, "warmup_frames": 24}
        buffer |= {"capacity": 40, "updates_per_batch": 4}
        del buffer["updates_per_iteration"]
    return {
        **RUNS[name],
        "run": {"name": name, "seed": 1, "total_updates": 40, "device": "cpu"},
        "env": {"use": "testing:toy", "actions": actions},
        "collector": {"use": "local", "frames_per_batch": 8} if name == "mixed" else [],
        "estimator": [],
        "buffer": buffer,
        "evaluator": {"use": "episodes", "episodes": 2, "every": 16},
        "checkpoint": {"use": "testing:toy", "every": 16},
    }


@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_stops_and_resumes_is_the_run_without_a_stop(name, data, tmp_path):
    """It stops within an iteration, which has 8 updates."""
    sections = sections_of(name, data)
    untrained = make_trainer(sections=sections).model
    whole = check_resumed(tmp_path, sections=sections, stop_at=13)
    assert whole.progress.updates == 40
    assert (whole.progress.frames > 0) == (name == "mixed")
    assert not all(map(torch.equal, untrained.parameters(), whole.model.parameters())), "it learns"
    dataset = Dataset(sections["buffer"]["path"])
    assert read_manifest(whole.last_checkpoint)["data"] == {str(dataset.file): dataset.metadata.file["xxh3"]}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["iql", "mixed"])
def test_a_run_that_is_killed_and_resumed_is_the_run_without_a_kill(name, data, tmp_path):
    """By SIGKILL at random moments, as `rlcore prove` does it."""
    sections = {key: value for key, value in sections_of(name, data).items() if value != []}
    sections["checkpoint"] = {"use": "torch", "every": 8}
    sections["run"] = {**sections["run"], "total_updates": 400}
    if name == "iql":
        sections["buffer"]["updates_per_iteration"] = 4
    (tmp_path / "config.toml").write_text(tomli_w.dumps(sections))
    command = [sys.executable, "-m", "rlcore", "prove", "config.toml", "--quick", "--kills", "6"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "killed 6 times and resumed" in done.stdout


def test_in_turn_the_actor_of_iql_weighs_actions_by_the_value_that_the_update_left(data):
    """Beside one at equal weights, with the same critics and value, which ask no actor.

    Adam's first step is of one size for every gradient, so there are several.
    """
    states = []
    for in_turn in (True, False):
        sections = sections_of("iql-in-turn", data)
        sections["loss"] = {**sections["loss"], "in_turn": in_turn, "inverse_temperature": 0.5}
        sections["buffer"]["updates_per_iteration"] = sections["run"]["total_updates"] = 4
        trainer = make_run(sections={**sections, "checkpoint": [], "evaluator": []}).trainer
        trainer.train()
        states.append(trainer.model.state_dict())
    after, equal = states
    same = {name for name, value in after.items() if torch.equal(value, equal[name])}
    assert all(name in same for name in after if name.split(".")[0] in ("critics", "target_critics", "value"))
    assert not any(name in same for name in after if name.startswith("actor.") and "weight" in name)


def test_an_agent_of_a_run_without_any_env_acts(data, tmp_path):
    """The spaces are those of the data, in training and afterwards."""
    import rlcore

    sections = {**sections_of("bc", data), "env": [], "evaluator": [], "checkpoint": {"use": "torch"}}
    run = make_run(sections=sections, folder=tmp_path)
    run.trainer.train()
    agent = rlcore.load_agent(run.folder)
    assert agent.act(np.zeros(3, np.float32)).shape == (2,)


def test_observations_are_normalised_by_the_statistics_of_the_data(data, tmp_path):
    """In the rows that are trained on, and by the agent afterwards; no env is stepped for them."""
    import rlcore

    transform = [{"use": "transforms:running-observation-norm", "clip": 0.0}]
    sections = {**sections_of("bc", data), "transform": transform, "checkpoint": {"use": "torch"}}
    run = make_run(sections=sections, folder=tmp_path)
    run.trainer.train()
    seen = np.concatenate([episode.observations[:-1] for episode in Dataset(sections["buffer"]["path"]).episodes()])
    expected = torch.from_numpy((seen - seen.mean(0)) / seen.std(0)).float()
    rows = run.trainer.parts.buffer._data.columns()["observation"]
    assert torch.allclose(rows, expected, atol=1e-5)
    assert not torch.allclose(rows, torch.from_numpy(seen), atol=0.1)
    acted = rlcore.load_agent(run.folder).act(seen[0])
    mode = run.trainer.model.policy.mode(expected[:1])
    assert np.allclose(acted, np.clip(mode.detach().numpy()[0], -1, 1), atol=1e-5), (acted, mode)


def test_cloning_takes_over_what_a_policy_does(tmp_path, monkeypatch, capsys):
    """Recorded by the command from a run, cloned, and as good as the data."""
    monkeypatch.chdir(tmp_path)
    sections = {"env": {"use": "gymnasium", "id": "CartPole-v1", "num_envs": 1}, "model": {"use": "mlp", "hidden": [8]}}
    sections |= {"loss": {"use": "ppo"}, "estimator": {"use": "gae"}, "evaluator": [], "checkpoint": {"use": "torch"}}
    make_run("collector.frames_per_batch=64", sections=sections, folder=tmp_path / "runs").trainer.train()
    arguments = ["data", "record", "runs/toy", "--episodes", "5", "--out", "cartpole", "--seed", "3"]
    assert command_line.main(arguments) == 0, capsys.readouterr().err
    dataset = Dataset("cartpole")
    assert (dataset.metadata.episodes, dataset.metadata.env_id) == (5, "CartPole-v1")
    assert [episode.seed for episode in dataset.episodes()] == [3, 4, 5, 6, 7]
    again = gymnasium.make("CartPole-v1")
    for episode in itertools.islice(dataset.episodes(), 2):
        seen = [again.reset(seed=episode.seed)[0], *(again.step(int(action))[0] for action in episode.actions)]
        assert np.array_equal(seen, episode.observations), "the seeds and actions give the episode again"
    assert command_line.main(["data", "check", "cartpole"]) == 0
    assert command_line.main([*arguments, "--random"]) != 0, "the folder is there already"
    random = [*arguments[:-3], "random", "--random"]
    assert command_line.main(random) == 0
    assert command_line.main(["data", "merge", "cartpole", "random", "--out", "both"]) == 0
    capsys.readouterr()
    assert command_line.main(["data", "show", "both"]) == 0
    assert "episodes      10 of" in capsys.readouterr().out
    cloned = {"env": sections["env"], **CLONING, "loss": {"use": "offline:bc"}, "collector": [], "estimator": []}
    cloned |= {"optimizer": [{"use": "adam", "parameters": ["actor"], "lr": 1e-2}], "evaluator": []}
    cloned |= {"run": {"name": "bc", "seed": 1, "total_updates": 300, "device": "cpu"}}
    cloned |= {
        "buffer": {"use": "datasets:dataset", "path": "cartpole", "minibatch_size": 32},
        "metrics": {"every": 50},
    }
    trainer = make_run(sections=cloned).trainer
    trainer.train()
    columns = list(dataset.episodes())
    seen = torch.from_numpy(np.concatenate([episode.observations[:-1] for episode in columns]))
    data = torch.from_numpy(np.concatenate([episode.actions for episode in columns]))
    with torch.no_grad():
        agrees = (trainer.model.policy.mode(seen) == data).float().mean()
    assert agrees > 0.9, "it acts as the policy that was recorded"


def test_the_expectile_is_that_of_torchrl():
    torchrl = pytest.importorskip("torchrl.objectives")
    bench = LossContract.of("offline:iql", {"expectile": 0.8}, IQL)
    loss = bench.make(bench.bench())
    assert isinstance(loss, IQLLoss)
    error = torch.linspace(-2, 3, 50).unsqueeze(-1)
    expected = torchrl.IQLLoss.loss_value_diff(error, 0.8).mean()
    assert torch.allclose(loss._expectile(error), expected)


def test_the_gap_of_discrete_cql_is_a_cross_entropy():
    from rlcore_plugin_testing.contracts.data import minibatch

    bench = LossContract.of("offline:discrete-cql", {"conservative_weight": 2.0}, DISCRETE)
    context = bench.bench()
    loss, entries = bench.make(context), minibatch(context)
    values = context.model.q_values(entries["observation"])
    expected = 2 * torch.nn.functional.cross_entropy(values, entries["action"])
    assert torch.allclose(loss(entries)["loss_conservative"], expected, atol=1e-6)


@pytest.mark.parametrize("backup_entropy", [False, True])
def test_the_critics_of_cql_learn_what_the_equations_say(backup_entropy):
    """Its target has the entropy of the next action or not, and the squared error is not halved."""
    from rlcore_plugin_testing.contracts.data import minibatch
    from rlcore_plugin_testing.contracts.loss import with_noise

    keys = {"conservative_weight": 2.0, "conservative_samples": 3, "gamma": 0.9, "backup_entropy": backup_entropy}
    bench = LossContract.of("offline:cql", keys, STOCHASTIC)
    context = bench.bench()
    model, loss = context.model, bench.make(context)
    entries = with_noise(loss, minibatch(context))
    now, following, data = entries["observation"], entries["next", "observation"], entries["action"]
    with torch.no_grad():
        unit, log_prob = model.actor.rsample(following, entries["next", "noise"])
        next_value = model.target_critics.values(following, unit).amin(0)
        if backup_entropy:
            next_value = next_value - model.temperature() * log_prob
        target = entries["next", "reward"] + 0.9 * ~entries["next", "terminated"] * next_value
        uniform = entries["conservative_uniform"]
        weighed = [model.critics.values(now, one) - math.log(0.5) * one.shape[-1] for one in uniform]
        for seen, noises in zip((now, following), entries["conservative_noise"], strict=True):
            for noise in noises:
                unit, log_prob = model.actor.rsample(seen, noise)
                weighed.append(model.critics.values(now, unit) - log_prob)
        values = model.critics.values(now, model.box.to_unit(data))
        gap = torch.stack(weighed).logsumexp(0) - values
        expected = ((values - target).square() + 2.0 * gap).mean((1, 2)).sum()
    assert torch.allclose(loss(entries)["loss_critics"], expected, rtol=1e-5)


def test_td3_bc_without_values_is_cloning():
    from rlcore_plugin_testing.contracts.data import minibatch
    from rlcore_plugin_testing.contracts.loss import with_noise

    bench = LossContract.of("offline:td3-bc", {"alpha": 0.0}, DETERMINISTIC)
    context = bench.bench()
    loss, entries = bench.make(context), minibatch(context)
    unit, box = context.model.actor.unit(entries["observation"]), context.model.box
    expected = torch.nn.functional.mse_loss(unit, box.to_unit(entries["action"]))
    assert torch.allclose(loss(with_noise(loss, entries))["loss_actor"], expected)


def test_nothing_here_needs_minari():
    assert "rlcore_plugin_datasets.hdf5" in sys.modules
    from pathlib import Path

    import rlcore_plugin_datasets

    source = "".join(file.read_text() for file in Path(rlcore_plugin_datasets.__file__).parent.glob("*.py"))
    assert "import minari" not in source
    assert "pickle" not in source.replace("unpickled", "")
