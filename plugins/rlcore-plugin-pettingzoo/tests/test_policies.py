"""Several policies in one run: agents that see and do different things, each policy with its own rows."""

import csv

import numpy as np
import pytest
import torch
from gymnasium.spaces import Discrete
from rlcore_plugin_policies.batches import OwnBatches
from rlcore_plugin_reports.curves import read_metrics
from rlcore_plugin_testing import check_resumed, difference, make_run

import rlcore
from rlcore.cli.command_line import main
from rlcore.errors import ConfigError, EndOfData

from .mixed import SECTIONS


def run_of(*overrides, **sections):
    return make_run(*overrides, sections={**SECTIONS, **sections})


class Recorder:
    """Keeps the batches of one policy."""

    def __init__(self, policy):
        self.policy = policy
        self.batches = []

    @rlcore.hookimpl
    def batch_process(self, batch, trainer):
        own = OwnBatches(trainer.model.shares, trainer.model.policy, batch.batch_size[0])
        self.batches.append(own.of(self.policy, batch).clone())


class Player:
    """A collector of batches that were recorded."""

    def __init__(self, batches, like):
        self._batches = iter(batches)
        self.batch_steps = like.batch_steps

    def collect(self):
        for batch in self._batches:
            return batch
        raise EndOfData

    def episodes(self):
        return []

    def update_model(self):
        pass

    def close(self):
        pass


def test_the_version_of_what_several_policies_need_belongs_to_their_run():
    assert "rlcore-plugin-policies" in run_of().trainer.parts.provenance.versions


def alone(policy, keys, batches):
    """Return the model of a run with one policy, trained on what the agents of another run lived through."""
    named = {name: {**table, "name": policy} for name, table in keys.items() if name in ("loss", "estimator", "buffer")}
    sections = {**SECTIONS, **keys, **named, "evaluator": []}
    run = make_run(sections=sections)
    parts = run.trainer.parts
    parts.collector = Player(batches, parts.collector)
    run.trainer.train()
    return run.trainer.model


def test_each_policy_learns_what_it_would_learn_alone():
    """To the bit, with other spaces, losses that end their epochs, paces, sizes and numbers of epochs."""
    recorders = [Recorder("walkers"), Recorder("flyers")]
    run = make_run(sections=SECTIONS, hooks=recorders)
    run.trainer.train()
    walkers = {
        "env": {**SECTIONS["env"], "num_envs": 4, "kwargs": {"flyers": 0}},
        "model": {"use": "mlp", "hidden": [8], "name": "walkers"},
        "loss": {"use": "ppo", "target_kl": 0.003},
        "optimizer": SECTIONS["optimizer"][:1],
        "collector": {"frames_per_batch": 64},
        "buffer": {"minibatch_size": 16, "epochs": 3},
    }
    flyers = {
        "env": {**SECTIONS["env"], "num_envs": 2, "kwargs": {"walkers": 0}},
        "model": {"use": "mlp", "hidden": [12], "name": "flyers"},
        "loss": {"use": "ppo"},
        "optimizer": [{"use": "adam", "lr": 3e-2, "every": 2}],
        "collector": {"frames_per_batch": 32},
        "buffer": {"minibatch_size": 8, "epochs": 2},
    }
    for recorder, keys in zip(recorders, (walkers, flyers), strict=True):
        own = run.trainer.model.of(recorder.policy).state_dict()
        other = alone(recorder.policy, keys, recorder.batches).state_dict()
        assert difference(dict(own), dict(other)) is None
        untrained = run_of().trainer.model.of(recorder.policy).state_dict()
        assert difference(dict(own), dict(untrained)) is not None


def test_a_batch_has_the_rows_of_each_policy_as_its_agents_saw_and_did():
    run = run_of()
    trainer = run.trainer
    batch = trainer.collector.collect()
    trainer.parts.estimator(batch)
    own = OwnBatches(trainer.model.shares, trainer.model.policy, 6)
    walkers, flyers = own.of("walkers", batch), own.of("flyers", batch)
    assert walkers["observation"].shape == (4, 16, 2)
    assert flyers["observation"].shape == flyers["next", "observation"].shape == (2, 16, 3)
    assert walkers["action"].dtype == torch.int64
    assert flyers["action"].shape == (2, 16, 2)
    x, y, between = flyers["observation"].unbind(-1)
    assert torch.allclose(x - y, between, atol=1e-5)
    for name, share in (("walkers", walkers), ("flyers", flyers)):
        model = trainer.model.of(name)
        log_prob = model.actor.distribution.log_prob(model.actor(share["observation"]), share["action"])
        assert torch.allclose(log_prob, share["sample_log_prob"], atol=1e-6)
        assert torch.equal(model.critic(share["observation"]), share["state_value"])
        assert share["advantage"].shape == (*share.batch_size, 1)
    assert flyers["collector", "mask"].sum() < walkers["collector", "mask"].sum() / 2


def test_figures_are_told_by_policy():
    run = run_of()
    run.trainer.train()
    latest = run.trainer.metrics.latest
    for name in ("walkers", "flyers"):
        assert latest[f"episode/return/{name}"] < 0
        assert latest[f"train/{name}/loss_objective"] != 0
        assert f"train/{name}/lr" in latest
    assert run.trainer.learner.scheduled() == {"walkers/lr": 1e-2, "flyers/lr": 3e-2}
    result = run.trainer.last_evaluation
    assert result.policies == ("walkers", "walkers", "flyers") * 2
    by_policy = result.returns_by_policy()
    assert [len(returns) for returns in by_policy.values()] == [4, 2]
    assert sorted([*by_policy["walkers"], *by_policy["flyers"]]) == sorted(result.returns)
    counts = {name: run.trainer.parts.stateful[f"progress.{name}"].updates for name in ("walkers", "flyers")}
    assert sum(counts.values()) == run.trainer.progress.updates
    assert counts["walkers"] > counts["flyers"] > 0
    assert set(run.trainer.learner.optimizers) == {"walkers.adam", "flyers.adam"}


def test_every_episode_of_an_evaluation_says_whose_it_is(tmp_path):
    run = make_run("run.total_frames=96", sections={**SECTIONS, "logger": []}, folder=tmp_path)
    run.trainer.train()
    with (tmp_path / "toy" / "evaluations.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["policy"] for row in rows[-6:]] == ["walkers", "walkers", "flyers"] * 2
    *_, last = read_metrics(tmp_path / "toy")["evaluation/return/flyers"].values()
    assert last == pytest.approx(np.mean(run.trainer.last_evaluation.returns_by_policy()["flyers"]))


def test_different_algorithms_train_side_by_side():
    sections = {
        "model": {
            "walkers": {"use": "dqn:q-network", "hidden": [8], "agents": ["walker_*"]},
            "flyers": {"use": "mlp", "hidden": [8], "agents": ["flyer_*"]},
        },
        "loss": {"walkers": {"use": "dqn"}, "flyers": {"use": "ppo"}},
        "estimator": {"flyers": {"use": "gae"}},
        "buffer": {
            "flyers": {"use": "rollout", "minibatch_size": 8},
            "walkers": {"use": "replay", "capacity": 500, "minibatch_size": 16, "warmup_frames": 200},
        },
        "learner": {"use": "gradient"},
    }
    run = run_of(**sections)
    weights = {name: value.clone() for name, value in run.trainer.model.state_dict().items()}
    updates = {"walkers": [], "flyers": []}
    for _ in run.trainer:
        for name, own in updates.items():
            own.append(run.trainer.parts.stateful[f"progress.{name}"].updates)
    moved = {
        name.partition(".")[0]
        for name, value in run.trainer.model.state_dict().items()
        if (value != weights[name]).any()
    }
    assert moved == {"walkers", "flyers"}
    assert updates["walkers"][0] == 0 < updates["flyers"][0], "one waits for its warm-up, and the other does not"


def test_many_episodes_take_turns_in_whole_games():
    assert run_of(evaluator={"use": "episodes", "episodes": 102}).trainer.evaluator is not None


def test_a_resume_goes_on_to_the_bit(tmp_path):
    check_resumed(tmp_path, sections=SECTIONS, stop_at=150)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"evaluator": {"use": "episodes", "episodes": 10}},
            r"\[evaluator\] episodes = 10.*a game has 3.*set it to a multiple of 3",
        ),
        (
            {
                "model": {"use": "mlp"},
                "loss": {"use": "ppo"},
                "buffer": {"minibatch_size": 16},
                "optimizer": [{"use": "adam"}],
            },
            "one policy acts for all agents: the observations of 'flyer_0' are",
        ),
        (
            {"model": {**SECTIONS["model"], "flyers": {"use": "mlp", "agents": ["flyer_*", "walker_1"]}}},
            r"\[model.walkers\] and \[model.flyers\] agents: both name 'walker_1'",
        ),
        (
            {"model": {**SECTIONS["model"], "flyers": {"use": "recurrent:gru", "agents": ["flyer_*"]}}},
            r"\[model.flyers\].*has a state, which one of several policies cannot have",
        ),
        ({"transform": [{"use": "transforms:running-observation-norm"}]}, r"\[\[transform\]\].*changes observations"),
        ({"buffer": {"minibatch_size": 48}}, "policy 'flyers'.*minibatch_size = 48 is more than the 32 steps"),
        ({"estimator": {"use": "gae", "flyers": {"every": "epoch"}}}, r"\[estimator\] every: 'batch' for walkers and"),
        (
            {"run": {"name": "toy", "total_updates": 40, "device": "cpu"}, "collector": {"use": "local"}},
            r"\[run\] total_updates: each of several policies",
        ),
        ({"collector": {"use": "core:none"}}, r"\[collector\] use = 'none' collects no frames"),
    ],
)
def test_what_several_policies_cannot_have_is_refused_before_the_first_frame(changes, told):
    with pytest.raises(ConfigError, match=told):
        run_of(**changes)


def test_each_policy_is_an_agent_of_its_own_and_all_of_them_are_evaluated(tmp_path, capsys):
    sections = {**SECTIONS, "checkpoint": {"use": "torch"}, "logger": [{"use": "csv"}]}
    run = make_run("run.total_frames=96", sections=sections, folder=tmp_path)
    run.trainer.train()
    place = tmp_path / "toy"
    seen = np.array([[0.5, -1.0, 1.5], [2.0, 1.0, 1.0]], np.float32)
    agent = rlcore.load_agent(place, policy="flyers")
    expected = run.trainer.model.of("flyers").policy.mode(torch.from_numpy(seen)).detach().numpy()
    assert np.array_equal(agent.act(seen), expected)
    assert agent.observation_space.shape == (3,)
    assert rlcore.load_agent(place, policy="walkers").action_space == Discrete(2)
    with pytest.raises(ConfigError, match="several policies, walkers, flyers: name one of them"):
        rlcore.load_agent(place)
    with pytest.raises(ConfigError, match="none is called 'flyer'; did you mean 'flyers'"):
        rlcore.load_agent(place, policy="flyer")
    assert main(["export", str(place), "--format", "safetensors", "--policy", "flyers"]) == 0
    exported = rlcore.load_agent(place / "policy-flyers.safetensors")
    assert np.array_equal(exported.act(seen), expected)
    assert main(["export", str(place), "--format", "safetensors"]) == 2
    capsys.readouterr()
    assert main(["evaluate", str(place)]) == 0
    told = capsys.readouterr().out
    assert "policy walkers: mean return" in told
    assert "over 2 episodes" in told
    assert main(["evaluate", str(place), "--episodes", "4"]) == 2


def test_a_worker_of_a_collector_steps_whole_games():
    with pytest.raises(ConfigError, match=r"num_workers = 3 leaves each worker 2 .*a game has 3 agents"):
        run_of(collector={"use": "parallel:workers", "num_workers": 3, "frames_per_batch": 96})
