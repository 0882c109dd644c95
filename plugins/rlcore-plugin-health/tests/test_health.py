"""What health says: each check by figures that are wrong and by figures that are right, and in runs."""

import logging
from dataclasses import replace
from pathlib import Path

import pytest
from rlcore_plugin_health import health
from rlcore_plugin_health.checks import CHECKS, Figures, Memory
from rlcore_plugin_health.warnings_file import read_warnings, write_warnings

import rlcore

WELL = Figures(
    row={"train/q_value": 50.0, "train/entropy": 0.5, "train/kl_approx": 0.02, "train/grad_norm": 1.0},
    progress=0.6,
    frames=60_000,
    updates=100,
    episodes=10,
    steps=60_000,
    gamma=0.99,
    most_reward=1.0,
    most_value=90.0,
    explained=0.5,
    discrete_entropy=0.69,
)


def well(**changes):
    """Return figures of a run that is well, with some changed; `row` is added to."""
    row = {**WELL.row, **changes.pop("row", {})}
    return replace(WELL, **changes, row=row)


def said(name, rows, memory=None):
    """Return the first message of a check over rows, or None."""
    memory = memory or Memory()
    return next((message for message in (CHECKS[name](now, memory) for now in rows) if message), None)


def evaluated(*returns):
    first, *others = returns
    return Memory(first_evaluation=first, best_since=max(others), evaluations=len(others))


@pytest.mark.parametrize("name", CHECKS)
def test_nothing_is_said_of_a_run_that_is_well(name):
    assert said(name, [well()] * 50, evaluated(20, 30, 40, 50)) is None


@pytest.mark.parametrize(
    ("name", "rows", "words"),
    [
        ("values", [well(row={"train/q_value": 4e7})], "values reach 4e+07, and no return can be above 100"),
        ("values", [well(row={"train/q_value/min": -4e7})], "values reach 4e+07"),
        ("values", [well(most_value=2e3)], "values reach 2e+03"),
        ("entropy", [well(progress=0.1, row={"train/entropy": 1e-3})], "is 0.001 (0.69 at most) after 10% of the run"),
        (
            "entropy",
            [
                well(progress=progress, discrete_entropy=None, dimensions=2, row={"train/entropy": value})
                for progress, value in ((0.01, 2.8), (0.2, -5.3))
            ],
            "is -5.3 (2.8 at first) after 20% of the run",
        ),
        ("kl", [well(row={"train/kl_approx": 1.5})], "is 1.5 on average"),
        ("gradients", [well(row={"train/grad_norm": 1e-12})] * 3, "1e-12 in 3 rows of metrics in succession"),
        ("gradients", [well()] * 5 + [well(row={"train/grad_norm": 2e4})], "is 2e+04, and was 1 before"),
        ("critic", [well(explained=-0.2)] * 10, "its explained variance is -0.20, and was not above 0 in 10 rows"),
        ("episodes", [well(episodes=0)], "no episode ended in 60,000 steps of each env"),
        ("rewards", [well(most_reward=0.0)], "every reward of the first 60,000 frames was 0"),
        ("updates", [well(updates=0)], "no update was made in the first 60,000 frames"),
    ],
)
def test_what_is_wrong_is_said_with_its_number(name, rows, words):
    assert words in said(name, rows)


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("values", [well(row={"train/q_value": 500.0})]),
        ("values", [well(gamma=1.0, most_value=1e9)]),
        ("values", [well(gamma=None, most_value=1e9)]),
        ("values", [well(most_reward=None, most_value=1e9)]),
        ("entropy", [well(row={"train/entropy": 1e-3})]),
        ("gradients", [well(row={"train/grad_norm": 2e4})]),
        ("gradients", [well(row={"train/grad_norm": norm}) for norm in (0.0, 0.0, 1.0, 0.0, 0.0)]),
        ("critic", [well(explained=value) for value in [-0.2] * 9 + [0.1] + [-0.2] * 9]),
        ("critic", [well(explained=-0.2, progress=0.05)] * 20),
        ("critic", [well(explained=0.9, progress=0.05)] + [well(explained=-2.0)] * 20),
        ("episodes", [well(episodes=0, steps=900)]),
        ("rewards", [well(most_reward=0.0, progress=0.1)]),
        ("updates", [well(updates=0, progress=0.3)]),
    ],
)
def test_what_is_not_wrong_yet_is_not_said(name, rows):
    assert said(name, rows) is None


def test_a_run_whose_evaluations_never_got_better_learned_nothing():
    assert "since the first one (20) is 19" in said("learning", [well()], evaluated(20, 10, 19, 12))
    assert said("learning", [well()], evaluated(20, 10, 19)) is None, "too few"
    assert said("learning", [well(progress=0.4)], evaluated(20, 10, 19, 12)) is None, "too early"


def test_a_config_can_leave_out_every_check(build):
    build(hook=[{"use": "health", "ignore": list(CHECKS)}])


# in runs


def trained(build, caplog, **sections):
    caplog.set_level(logging.WARNING)
    hook = {"use": "health", **sections.pop("health", {})}
    trainer = build(hook=[hook], **sections).trainer
    trainer.train()
    return [record.message for record in caplog.records if record.message.startswith("health")]


# so large a rate that policy and critic leave everything behind, and so small a gamma that returns stay near 1
WRONG = {
    "run": {"total_frames": 256},
    "optimizer": [{"use": "adam", "lr": 0.5}],
    "estimator": {"use": "gae", "gamma": 0.1},
}


def test_each_thing_is_said_once_in_a_run_and_can_be_left_out(build, caplog):
    messages = trained(build, caplog, health={"value_factor": 1.5}, **WRONG)
    for words in ("no return can be above 1.11: the largest reward so far is 1, and gamma is 0.1", "KL divergence"):
        assert sum(words in message for message in messages) == 1
    assert messages[0].startswith("health, frame ")
    caplog.clear()
    messages = trained(build, caplog, health={"value_factor": 1.5, "ignore": ["kl"]}, **WRONG)
    assert ["KL divergence" in message for message in messages].count(True) == 0
    assert messages


def test_a_run_that_is_resumed_says_nothing_twice(build, caplog):
    sections = {"hook": [{"use": "health"}], "checkpoint": {"use": "torch", "every": 32}, **WRONG}
    run = build(write=True, **sections)
    run.trainer.stop_at = 128
    run.trainer.train()
    assert "KL divergence" in caplog.text
    caplog.clear()
    resumed = build(write=True, resume=True, **sections)
    resumed.trainer.train()
    assert "KL divergence" not in caplog.text


def test_what_it_said_is_in_the_run_folder_and_a_resume_cuts_it_back(build, caplog):
    sections = {"hook": [{"use": "health"}], "checkpoint": {"use": "torch", "every": 32}, **WRONG}
    run = build(write=True, **sections)
    run.trainer.stop_at = 128
    run.trainer.train()
    warned = read_warnings(run.folder)
    assert "KL divergence" in " ".join(one["message"] for one in warned)
    assert [f"health, frame {one['frames']}: {one['message']}" for one in warned] == [
        record.message for record in caplog.records if record.message.startswith("health")
    ]
    write_warnings(run.folder, [*warned, {"frames": 200, "check": "values", "message": "after the checkpoint"}])
    build(write=True, resume=True, **sections).trainer.train()
    after = read_warnings(run.folder)
    assert after[: len(warned)] == warned
    assert "after the checkpoint" not in {one["message"] for one in after}


def test_a_folder_that_takes_no_file_stops_no_run(build, caplog, monkeypatch):
    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(health, "write_warnings", full)
    run = build(write=True, hook=[{"use": "health"}], **WRONG)
    run.trainer.train()
    assert run.trainer.progress.frames == 256
    assert "no space left" in caplog.text


def test_what_it_remembers_outlives_a_checkpoint(build):
    run = build(hook=[{"use": "health"}], evaluator={"use": "episodes", "every": 32, "episodes": 1})
    run.trainer.train()
    hook = next(hook for hook in run.trainer.hooks.hooks if hook.name == "health").instance
    state = hook.state_dict()
    assert state["most_reward"] == 1
    assert state["memory"]["evaluations"] == 3
    assert len(state["memory"]["gradients"]) > 1
    other = build(hook=[{"use": "health"}]).trainer.hooks
    fresh = next(hook for hook in other.hooks if hook.name == "health").instance
    fresh.load_state_dict(state)
    assert fresh.state_dict() == state


OFTEN = ["metrics.every=500", "evaluator.every=2000"]
EXAMPLES = {
    "ppo-cartpole": ["run.total_frames=20_000", "metrics.every=1000", "evaluator.every=10_000"],
    "ppo-idp": ["run.total_frames=6000", "evaluator.every=1000"],
    "dqn-cartpole": ["run.total_frames=6000", "metrics.every=500", "evaluator.every=1000"],
}
# one seed each, as they are slower
ONCE = {
    "sac-pendulum": ["run.total_frames=4000", *OFTEN],
    "td3-pendulum": ["run.total_frames=4000", "model.random_frames=1000", "buffer.warmup_frames=1000", *OFTEN],
    "c51-cartpole": ["run.total_frames=20_000", "metrics.every=1000", "evaluator.every=10_000"],
    "rainbow-cartpole": ["run.total_frames=6000", *OFTEN],
    "ppo-cartpole-lstm": ["run.total_frames=20_000", "metrics.every=1000", "evaluator.every=10_000"],
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "seed"), [*((name, seed) for name in EXAMPLES for seed in (1, 2, 3)), *((name, 1) for name in ONCE)]
)
def test_nothing_is_said_of_the_examples(example, seed, caplog):
    path = Path(__file__).parents[3] / "examples" / f"{example}.toml"
    settings = (EXAMPLES | ONCE)[example]
    config = rlcore.load_config(path, [*settings, f"run.seed={seed}", "hook.0.use=health"])
    rlcore.build(config, write=False).trainer.train()
    assert not [record.message for record in caplog.records if record.message.startswith("health")]
