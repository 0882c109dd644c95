"""Schedules against those of torch."""

from __future__ import annotations

import math

import pytest
import torch
from torch.optim import lr_scheduler

from rlcore import Progress
from rlcore.learners.schedules import Cosine, Linear, ScheduleConfig
from rlcore.testing.contracts import SchedulerContract

LINEAR, COSINE = (SchedulerContract.of(name) for name in ("linear", "cosine"))


def ours(kind, initial, final, steps):
    schedule = kind(ScheduleConfig(final=final), None)
    return [schedule.value(initial, Progress(steps, frames=step)) for step in range(steps + 1)]


def torchs(make, initial, steps):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=initial)
    scheduler, values = make(optimizer), []
    for _ in range(steps + 1):
        values.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return values


@pytest.mark.parametrize("final", [0.0, 0.1, 1.0])
def test_cosine_is_cosine_annealing_of_torch(final):
    expected = torchs(lambda o: lr_scheduler.CosineAnnealingLR(o, T_max=50, eta_min=final * 3e-4), 3e-4, 50)
    assert ours(Cosine, 3e-4, final, 50) == pytest.approx(expected, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("final", [0.0, 0.1, 1.0])
def test_linear_is_linear_lr_of_torch(final):
    expected = torchs(lambda o: lr_scheduler.LinearLR(o, 1.0, final, total_iters=50), 3e-4, 50)
    assert ours(Linear, 3e-4, final, 50) == pytest.approx(expected, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize(("frames", "expected"), [(0, 0.5), (250, 0.375), (500, 0.25), (1000, 0.0)])
def test_linear_falls_in_a_straight_line(frames, expected):
    assert LINEAR.make(LINEAR.bench()).value(0.5, Progress(1000, frames=frames)) == expected


def test_linear_ends_at_its_final_fraction():
    assert LINEAR.make(LINEAR.bench(), final=0.2).value(0.5, Progress(1000, frames=1000)) == pytest.approx(0.1)


@pytest.mark.parametrize("frames", [0, 100, 500, 900, 1000])
def test_cosine_falls_along_half_a_cosine(frames):
    expected = 0.5 * (0.1 + 0.9 * (1 + math.cos(math.pi * frames / 1000)) / 2)
    schedule = COSINE.make(COSINE.bench(), final=0.1)
    assert schedule.value(0.5, Progress(1000, frames=frames)) == pytest.approx(expected)


@pytest.mark.parametrize("kind", [Linear, Cosine])
def test_after_the_horizon_the_final_value_stays(kind):
    schedule = kind(ScheduleConfig(final=0.25), None)
    assert schedule.value(2.0, Progress(100, frames=5000)) == pytest.approx(0.5)


def test_the_learning_rate_of_a_run_follows_its_schedule(build):
    run = build(scheduler=[{"use": "linear", "final": 0.5}], optimizer=[{"use": "adam", "lr": 0.1}])
    seen = [run.trainer.learner.optimizers["adam"].param_groups[0]["lr"] for _ in run.trainer]
    assert seen == pytest.approx([0.1 * (1 - 0.5 * share) for share in (1 / 3, 2 / 3, 1)])
    assert run.trainer.metrics.latest["train/lr"] == pytest.approx(0.05)


def test_a_schedule_names_the_optimizer_and_the_number_that_it_moves(build):
    optimizers = [
        {"use": "adam", "name": "a", "lr": 0.1, "parameters": ["actor"]},
        {"use": "adam", "name": "c", "lr": 0.2, "weight_decay": 0.4, "parameters": ["critic"]},
    ]
    schedulers = [{"use": "linear", "target": "a.lr"}, {"use": "linear", "target": "c.weight_decay", "final": 0.5}]
    run = build(scheduler=schedulers, optimizer=optimizers)
    run.trainer.train()
    groups = {name: optimizer.param_groups[0] for name, optimizer in run.trainer.learner.optimizers.items()}
    assert groups["a"]["lr"] == pytest.approx(0)
    assert (groups["c"]["lr"], groups["c"]["weight_decay"]) == (0.2, pytest.approx(0.2))


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("lrr", "the optimizer has no number 'lrr'; did you mean 'lr'"),
        ("adma.lr", "no optimizer 'adma'; did you mean 'adam'"),
    ],
)
def test_a_target_that_does_not_exist_is_refused(build, target, message):
    from rlcore import ConfigError

    with pytest.raises(ConfigError, match=rf"\[scheduler\] target: {message}"):
        build(scheduler=[{"use": "linear", "target": target}])


def test_a_resumed_run_takes_up_the_schedule_where_it_was(build):
    arguments = {"scheduler": [{"use": "cosine"}], "optimizer": [{"use": "adam", "lr": 0.1}]}
    whole = build(**arguments)
    rates = [whole.trainer.learner.optimizers["adam"].param_groups[0]["lr"] for _ in whole.trainer]
    first = build(write=True, **arguments)
    first.trainer.stop_at = 64
    first.trainer.train()
    second = build(write=True, resume=True, **arguments)
    assert second.trainer.learner.optimizers["adam"].param_groups[0]["lr"] == rates[1]
    second.trainer.train()
    assert second.trainer.learner.optimizers["adam"].param_groups[0]["lr"] == rates[2]
