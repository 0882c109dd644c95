"""C: a resume that differs from the run: either it is what was asked for, or one message says why not."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path

import pytest
import torch

import rlcore
from rlcore.run.asked import ResumeOptions

RUN = Path("runs/tiny")
OPTIMIZERS = {
    "adam": {"use": "adam"},
    "adamw": {"use": "adamw", "weight_decay": 0.1},
    "momentum": {"use": "sgd", "lr": 1e-3, "momentum": 0.9},
}
ACCEPTED = ("--resume", "--accept-changes")


def manifests(folder=RUN):
    found = [json.loads(path.read_text()) for path in folder.glob("checkpoints/[0-9]*/manifest.json")]
    return sorted(found, key=lambda manifest: (manifest["progress"]["frames"], manifest["time"]))


def goes_on_as_before(cli, config):
    """Assert that a resume that failed left nothing behind: the run is evaluated and resumed."""
    assert (RUN / "config.toml").read_bytes() == config
    assert cli("evaluate", RUN, "--episodes", "1").code == 0
    resumed = cli("train", "--resume", RUN)
    assert resumed.code == 0, resumed.err
    assert manifests()[-1]["exact"], manifests()[-1]["inexact"]


# what does not fit


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("hidden", [8, 4, 512], ids=["same", "smaller", "larger"])
def test_an_optimizer_whose_model_starts_over_does_so_too(cli, stopped, optimizer, hidden):
    path = stopped(optimizer=[OPTIMIZERS[optimizer]])
    outcome = cli("train", path, *ACCEPTED, "--fresh", "model", "--set", f"model.hidden=[{hidden}]")
    assert outcome.code == 0, outcome.err
    name = f"optimizer.{OPTIMIZERS[optimizer]['use']}"
    assert {f"{part} started over at frame 32" for part in ("model", name)} <= set(manifests()[-1]["inexact"])
    assert tomllib.loads((RUN / "config.toml").read_text())["model"]["hidden"] == [hidden]
    assert cli("evaluate", RUN, "--episodes", "1").code == 0


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_moments_of_other_sizes_never_reach_a_kernel_and_the_run_goes_on_as_it_was(cli, stopped, optimizer):
    path = stopped(optimizer=[OPTIMIZERS[optimizer]])
    before = (RUN / "config.toml").read_bytes()
    outcome = cli("train", path, *ACCEPTED, "--set", "model.hidden=[512]")
    assert outcome.code == 5
    assert "size mismatch: actor.network.layers.0.weight is [512, 4] here, [8, 4] in the checkpoint" in outcome.err
    use = OPTIMIZERS[optimizer]["use"]
    assert f"the state of optimizer.{use} in the checkpoint does not fit" in outcome.err
    assert "of actor.network.layers.0.weight is [512, 4] float32 here, [8, 4] float32 in the checkpoint" in outcome.err
    assert f"--fresh model --fresh optimizer.{use}" in outcome.err
    assert "model.hidden = [512] here, [8] in the run" in outcome.err
    assert "Traceback" not in outcome.err
    goes_on_as_before(cli, before)


CHANGES = {
    "env.id=Acrobot-v1": ("env.id = 'Acrobot-v1' here, 'CartPole-v1' in the run", ["model"]),
    "collector.use=parallel:workers": ("it is 'parallel:workers' here, 'core:local' in the checkpoint", ["collector"]),
    "optimizer.use=sgd": ("has no state of optimizer.sgd", ["optimizer.sgd"]),
    "model.hidden=[8, 8]": ("model.hidden = [8, 8] here, [8] in the run", ["model"]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_part_that_does_not_fit_is_named_with_the_key_and_both_values(cli, stopped, change):
    path = stopped(env={"use": "gymnasium", "id": "CartPole-v1", "num_envs": 2})
    before = (RUN / "config.toml").read_bytes()
    message, parts = CHANGES[change]
    outcome = cli("train", path, *ACCEPTED, "--set", change)
    assert outcome.code == 5, outcome.err
    assert message in outcome.err
    assert all(f"--fresh {part}" in outcome.err for part in parts)
    assert "Traceback" not in outcome.err
    assert "zip()" not in outcome.err
    assert (RUN / "config.toml").read_bytes() == before
    options = [word for part in parts for word in ("--fresh", part)]
    options += ["--drop", "optimizer.adam"] if "optimizer" in change else []
    outcome = cli("train", path, *ACCEPTED, "--set", change, *options)
    assert outcome.code == 0, outcome.err
    assert manifests()[-1]["progress"]["frames"] >= 96


OTHER_ENVS = ("env.num_envs=4", "env.frame_skip=2", "env.vectorization=native", "env.kwargs={sutton_barto_reward=true}")


@pytest.mark.parametrize("change", OTHER_ENVS)
def test_other_envs_begin_new_episodes_aloud(cli, stopped, change):
    path = stopped(env={"use": "gymnasium", "id": "CartPole-v1", "num_envs": 2})
    outcome = cli("train", path, *ACCEPTED, "--set", change)
    assert outcome.code == 0, outcome.err
    assert "[env] differs from that of the run, so new episodes begin" in outcome.err
    assert "collector started over at frame 32" in manifests()[-1]["inexact"]
    assert manifests()[-1]["progress"]["frames"] >= 96


FREELY = (
    *("loss.clip_epsilon=0.3", "estimator.gamma=0.9", "buffer.epochs=1", "buffer.minibatch_size=8", "run.seed=2"),
    *("collector.frames_per_batch=16", "learner.max_grad_norm=0.5", "optimizer.lr=0.1", "buffer.remainder=fill"),
    *("model.activation=relu", "scheduler.0.use=linear", "run.deterministic=true"),
)


@pytest.mark.parametrize("change", FREELY)
def test_a_key_that_changes_no_shape_is_refused_or_with_accept_changes_simply_what_runs(cli, stopped, change):
    path = stopped()
    deterministic = torch.are_deterministic_algorithms_enabled()
    try:
        assert cli("train", path, "--resume", "--set", change).code == 2
        assert cli("train", path, *ACCEPTED, "--set", change).code == 0
    finally:
        torch.use_deterministic_algorithms(deterministic)
    assert not manifests()[-1]["exact"]
    assert manifests()[-1]["progress"]["frames"] >= 96


# numbers of optimizers

NUMBERS = {
    "adam": {"lr": 0.5, "weight_decay": 0.25, "betas": (0.5, 0.75), "eps": 0.125},
    "sgd": {"lr": 0.5, "weight_decay": 0.25, "momentum": 0.75},
}


@pytest.mark.parametrize("scheduler", [[], [{"use": "linear", "final": 0.5}]], ids=["constant", "scheduled"])
@pytest.mark.parametrize("use", NUMBERS)
def test_what_the_config_says_of_an_optimizer_is_what_runs(write_config, use, scheduler):
    """The moments are those of the checkpoint; a schedule goes on from the new value."""
    optimizer = {"use": use, "lr": 1e-3, **({"momentum": 0.5} if use == "sgd" else {})}
    first = rlcore.build(rlcore.load_config(write_config(optimizer=[optimizer], scheduler=scheduler))).trainer
    first.stop_at = 32
    first.train()
    moments = first.optimizer.state_dict()["state"]
    path = write_config(optimizer=[optimizer | NUMBERS[use]], scheduler=scheduler)
    second = rlcore.build(rlcore.load_config(path), resume=ResumeOptions(accept_changes=True)).trainer
    group = second.optimizer.param_groups[0]
    share = 1 - 0.5 * 32 / 96 if scheduler else 1
    assert {name: group[name] for name in NUMBERS[use]} == NUMBERS[use] | {"lr": pytest.approx(0.5 * share)}
    restored = second.optimizer.state_dict()["state"]
    assert all(torch.equal(restored[0][name], moments[0][name]) for name in moments[0])
    before = {name: value.clone() for name, value in second.model.state_dict().items()}
    second.stop_at = 64
    second.train()
    moved = max(float((value - before[name]).abs().max()) for name, value in second.model.state_dict().items())
    assert moved > 0.05, "with the rate of before it moves by thousandths"


def test_without_its_schedule_an_optimizer_has_the_rate_of_the_config(write_config):
    first = rlcore.build(rlcore.load_config(write_config(scheduler=[{"use": "linear"}]))).trainer
    first.stop_at = 64
    first.train()
    options = ResumeOptions(accept_changes=True)
    second = rlcore.build(rlcore.load_config(write_config()), resume=options).trainer
    assert second.optimizer.param_groups[0]["lr"] == 3e-4
    second.train()


class Halving:
    """Sets the rate by itself, as a hook that follows a divergence does."""

    @rlcore.hookimpl
    def post_steps(self, batch, trainer):
        trainer.optimizer.param_groups[0]["lr"] *= 0.5


def test_a_rate_that_a_hook_has_set_goes_on_where_the_config_is_as_it_was(write_config):
    first = rlcore.build(rlcore.load_config(write_config()), hooks=[Halving()]).trainer
    first.stop_at = 32
    first.train()
    second = rlcore.build(rlcore.load_config(write_config()), hooks=[Halving()], resume=True).trainer
    assert second.optimizer.param_groups[0]["lr"] == 1.5e-4
    second.train()


def test_a_schedule_goes_on_when_the_learner_starts_over(write_config):
    scheduler = [{"use": "linear"}]
    first = rlcore.build(rlcore.load_config(write_config(scheduler=scheduler))).trainer
    first.stop_at = 32
    first.train()
    options = ResumeOptions(fresh=("learner", "optimizer.adam"))
    second = rlcore.build(rlcore.load_config(write_config(scheduler=scheduler)), resume=options).trainer
    assert second.optimizer.param_groups[0]["lr"] == pytest.approx(2e-4)
    second.train()


# running episodes


def test_new_episodes_begin_in_every_part_that_carries_the_running_ones(write_config):
    """Sums of rewards, as an observer of the batch sees them."""
    sections = {"transform": [{"use": "transforms:reward-sum"}, {"use": "transforms:step-counter"}]}
    first = rlcore.build(rlcore.load_config(write_config(**sections))).trainer
    first.stop_at = 32
    first.train()
    assert float(first.batch["next", "step_count"][0, -1]) > 0, "an episode is running"
    options = ResumeOptions(fresh=("collector",))
    second = rlcore.build(rlcore.load_config(write_config(**sections)), resume=options).trainer
    next(iter(second))
    assert [float(second.batch[key][0, 0]) for key in ("episode_reward", "step_count")] == [0, 0]
    second.shutdown()


# words


@pytest.mark.parametrize("option", [("--fresh", "model"), ("--drop", "model"), ("--accept-changes",)])
def test_options_of_a_resume_without_a_resume_are_refused(cli, write_config, option):
    outcome = cli("train", write_config(), *option)
    assert outcome.code == 2
    assert f"{option[0]} says something about a resume; add --resume" in outcome.err


def test_every_wrong_name_is_named_at_once(cli, stopped):
    path = stopped()
    outcome = cli("train", path, "--resume", "--drop", "x", "--drop", "model", "--fresh", "y")
    assert outcome.code == 2
    assert "--drop x: the checkpoint has no such state" in outcome.err
    assert "--drop model: this config builds it" in outcome.err
    assert "--fresh y: this config builds no such part" in outcome.err
    outcome = cli("train", path, "--resume", "--fresh", "progress")
    assert outcome.code == 2
    assert "a run cannot set its clocks back" in outcome.err


def test_parts_that_come_and_go_are_named_at_once(cli, stopped, write_config):
    stopped(hook=[{"use": "early-stopping", "name": "old"}], evaluator={"use": "episodes", "episodes": 1})
    path = write_config(hook=[{"use": "early-stopping", "name": "new"}], evaluator={"use": "episodes", "episodes": 1})
    outcome = cli("train", path, *ACCEPTED)
    assert outcome.code == 5
    assert "--drop hook.old" in outcome.err
    assert "--fresh hook.new" in outcome.err
    assert cli("train", path, *ACCEPTED, "--drop", "hook.old", "--fresh", "hook.new").code == 0


def test_a_fresh_logger_writes_no_row_twice(cli, stopped):
    """It would go on after rows that are newer than the checkpoint, as a kill leaves them."""
    stopped(logger=[{"use": "csv"}], metrics={"every": 16})
    shutil.rmtree(max(RUN.glob("checkpoints/[0-9]*")))
    outcome = cli("train", "--resume", RUN, "--fresh", "logger.csv")
    assert outcome.code == 0, outcome.err
    rows = [line.rpartition(",")[0] for line in (RUN / "metrics.csv").read_text().splitlines()]
    assert len(rows) == len(set(rows)) > 1
    assert len(list(RUN.glob("metrics.csv.before-*"))) == 1
