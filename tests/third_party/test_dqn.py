"""DQN as somebody else would add it: a package of its own, public names only, and the same loop."""

from __future__ import annotations

import ast
import json
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import rlcore

PACKAGE = Path(__file__).parent / "dqn"
SOURCES = sorted((PACKAGE / "src").rglob("*.py"))
CONFIG = PACKAGE / "cartpole.toml"
SMALL = [
    "run.total_frames=400",
    "buffer.capacity=150",
    "buffer.warmup_frames=100",
    "hook.every=50",
    "evaluator.episodes=1",
    "evaluator.every=200",
    "metrics.every=50",
    "checkpoint.every=100",
    "optimizer.lr=0.01",
]


@pytest.fixture
def dqn(tmp_path, monkeypatch):
    """Install the package: its sources and its metadata on the path, as an editable install has them."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    info = tmp_path / "site" / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    requires = [f"Requires-Dist: {requirement}" for requirement in project["dependencies"]]
    header = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {project['version']}"]
    (info / "METADATA").write_text("\n".join([*header, *requires]) + "\n")
    ((name, module),) = project["entry-points"]["rlcore"].items()
    (info / "entry_points.txt").write_text(f"[rlcore]\n{name} = {module}\n")
    for folder in (tmp_path / "site", PACKAGE / "src"):
        monkeypatch.syspath_prepend(str(folder))
    monkeypatch.chdir(tmp_path)


def build(*overrides, **arguments):
    return rlcore.build(rlcore.load_config(CONFIG, overrides), **arguments)


def test_the_package_uses_public_names_only():
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert not any(alias.name.split(".")[0] == "rlcore" for alias in node.names), path
            elif isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "rlcore":
                assert node.module == "rlcore", f"{path}:{node.lineno} imports from {node.module}"
                assert {alias.name for alias in node.names} <= set(rlcore.__all__), f"{path}:{node.lineno}"


@pytest.mark.usefixtures("dqn")
def test_it_runs_through_the_loop_of_the_core():
    run = build(*SMALL, write=False)
    network = run.trainer.model.q_values
    before = [parameter.detach().clone() for parameter in network.parameters()]
    progress = run.trainer.train()
    assert (progress.frames, progress.iterations) == (400, 40)
    assert progress.updates == 5 * 31, "from 100 frames on, five in each iteration"
    assert not all(map(torch.equal, before, network.parameters()))
    latest = run.trainer.metrics.latest
    assert {"train/loss_q", "train/q_value", "train/grad_norm", "train/lr", "evaluation/return"} <= set(latest)
    assert run.config.resolved()["versions"]["rlcore-plugin-dqn-test"] == "0.3.0"


@pytest.mark.usefixtures("dqn")
def test_exploration_falls_with_the_progress_of_the_run():
    run = build(*SMALL, "model.epsilon_fraction=0.5", write=False)
    seen = {progress.frames: run.trainer.model.policy.epsilon for progress in run.trainer}
    # refreshed before each batch of ten
    assert seen[10] == 1.0
    assert seen[110] == pytest.approx(1 - 0.5 * 0.95)
    assert seen[210] == seen[400] == pytest.approx(0.05)


@pytest.mark.usefixtures("dqn")
def test_the_target_is_updated_by_the_hook_and_by_nothing_else():
    run = build(*SMALL, "hook.every=100", write=False)
    model, copies, targets = run.trainer.model, {}, {}

    def flat(network):
        return torch.cat([parameter.detach().flatten().clone() for parameter in network.parameters()])

    start = flat(model.target_q_values)
    for progress in run.trainer:
        copies[progress.frames], targets[progress.frames] = flat(model.q_values), flat(model.target_q_values)
    changes = [frames for frames in range(20, 401, 10) if not torch.equal(targets[frames], targets[frames - 10])]
    assert changes == [100, 200, 300, 400]
    assert torch.equal(targets[90], start)
    assert not torch.equal(targets[390], copies[390])


@pytest.mark.usefixtures("dqn")
def test_a_resumed_run_has_its_networks_its_transitions_and_its_exploration_back():
    first = build(*SMALL)
    first.trainer.stop_at = 200
    first.trainer.train()
    second = build(*SMALL, resume=True)
    ours, theirs = second.trainer.buffer.state_dict(), first.trainer.buffer.state_dict()
    assert (ours["added"], len(ours["rings"]["observation"])) == (200, 150)
    assert all(torch.equal(ours["rings"][key], theirs["rings"][key]) for key in theirs["rings"])
    weights = first.trainer.model.state_dict()
    assert any("target" in name for name in weights)
    assert all(torch.equal(value, weights[name]) for name, value in second.trainer.model.state_dict().items())
    second.trainer.train()
    assert second.trainer.progress.updates == 5 * 31
    assert second.trainer.model.policy.epsilon == pytest.approx(0.05)


@pytest.mark.usefixtures("dqn")
def test_the_command_line_trains_evaluates_and_resumes_it(cli):
    settings = [part for override in SMALL for part in ("--set", override)]
    assert cli("train", CONFIG, "--quiet", *settings, "--until", "200").code == 0
    assert cli("train", CONFIG, "--quiet", *settings, "--resume").code == 0
    outcome = cli("evaluate", "runs/dqn-cartpole", "--json")
    assert outcome.code == 0
    assert json.loads(outcome.out)["data"]["frames"] == 400
    shown = cli("plugins", "show", "dqn-test").out
    assert "double: default False. let the Q-network choose" in shown


@pytest.mark.usefixtures("dqn")
@pytest.mark.parametrize("double", [False, True])
def test_the_loss_is_the_one_of_the_papers(double):
    from rlcore_plugin_dqn_test.loss import DQNLoss

    torch.manual_seed(0)
    online, target = torch.nn.Linear(4, 2), torch.nn.Linear(4, 2)
    context = SimpleNamespace(model=SimpleNamespace(q_values=online, target_q_values=target))
    loss = DQNLoss(DQNLoss.Config(gamma=0.9, double=double), context)
    observation, following = torch.randn(5, 4), torch.randn(5, 4)
    action, reward = torch.tensor([0, 1, 0, 1, 1]), torch.randn(5, 1)
    terminated = torch.tensor([[False], [True], [False], [False], [True]])
    expected = []
    for row in range(5):
        values = target(following[row])
        best = (online(following[row]) if double else values).argmax()
        aim = reward[row, 0] + (0.0 if terminated[row] else 0.9 * values[best])
        expected.append((online(observation[row])[action[row]] - aim.detach()) ** 2)
    minibatch = {
        "observation": observation,
        "action": action,
        ("next", "observation"): following,
        ("next", "reward"): reward,
        ("next", "terminated"): terminated,
    }
    result = loss(minibatch)["loss_q"]
    assert result.item() == pytest.approx(sum(expected).item() / 5, rel=1e-5)
    result.backward()
    assert target.weight.grad is None or not target.weight.grad.any()


@pytest.mark.usefixtures("dqn")
def test_the_package_also_loads_as_a_loose_file(tmp_path):
    loose = tmp_path / "my_dqn.py"
    loose.write_text("from rlcore_plugin_dqn_test import provide_components\n__all__ = ['provide_components']\n")
    config = (
        CONFIG.read_text().replace("dqn-test:", "my-dqn:")
        + '\n[plugins]\nfiles = ["my_dqn.py"]\ndisable = ["dqn-test"]\n'
    )
    (tmp_path / "config.toml").write_text(config)
    run = rlcore.build(rlcore.load_config(tmp_path / "config.toml", SMALL), write=False)
    assert run.trainer.train().frames == 400
    assert "dqn-test" not in run.config.host.loaded
    sys.modules.pop("my_dqn")


@pytest.mark.slow
@pytest.mark.usefixtures("dqn")
@pytest.mark.parametrize("seed", [1, 2])
def test_it_solves_cartpole(seed):
    run = build(f"run.seed={seed}", write=False)
    run.trainer.train()
    assert run.trainer.last_evaluation.frames == 50_000
    assert run.trainer.last_evaluation.mean_return >= 450
