"""Schedules against those of torch."""

from __future__ import annotations

import math

import pytest
import torch
from rlcore_plugin_gradient.schedules import Cosine, Linear, ScheduleConfig, bind
from rlcore_plugin_testing.contracts import SchedulerContract
from torch.optim import lr_scheduler

import rlcore
from rlcore import ConfigError, Progress, hookimpl

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


def test_a_schedule_acts_from_the_first_update_on(build, monkeypatch):
    """One that begins elsewhere than at the value of the config, as a warm-up does."""
    monkeypatch.setattr(Linear, "value", lambda self, initial, progress: initial * progress.fraction)
    rates = []

    class Rates:
        @hookimpl
        def post_optim(self, learner):
            rates.append(learner.optimizers["adam"].param_groups[0]["lr"])

    run = build([Rates()], scheduler=[{"use": "linear"}], optimizer=[{"use": "adam", "lr": 0.1}])
    before = [parameter.detach().clone() for parameter in run.trainer.model.parameters()]
    next(iter(run.trainer))
    assert set(rates) == {0.0}
    assert all(map(torch.equal, before, run.trainer.model.parameters()))


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


# numbers of parts


def loss_schedule(run, name):
    """Return the number of the loss after each iteration."""
    numbers = run.trainer.learner._loss.schedulable
    return [float(numbers[name]) for _ in run.trainer]


@pytest.mark.parametrize(
    ("loss", "name"),
    [("ppo", "clip_epsilon"), ("ppo", "entropy_coef"), ("ppo", "critic_coef"), ("a2c", "entropy_coef")],
)
def test_a_number_of_the_loss_follows_its_schedule(loss, name, build):
    use = "ppo" if loss == "ppo" else "ppo:a2c"
    run = build(loss={"use": use, name: 0.25}, scheduler=[{"use": "linear", "target": f"loss.{name}", "final": 0.5}])
    seen = loss_schedule(run, name)
    assert seen == pytest.approx([0.25 * (1 - 0.5 * part) for part in (1 / 3, 2 / 3, 1)])
    assert run.trainer.metrics.latest[f"train/loss.{name}"] == pytest.approx(0.125)
    assert run.trainer.metrics.latest["train/lr"] == pytest.approx(3e-4)


def weights(run):
    return [parameter.detach().clone() for parameter in run.trainer.model.parameters()]


def equal(left, right):
    return all(map(torch.equal, weights(left), weights(right)))


def test_the_update_uses_what_is_scheduled(build):
    """A schedule that jumps gives the weights of a run whose key is set at the same moment."""
    changed = [{"use": "linear", "target": "loss.entropy_coef", "final": 0.0, "fraction": 0.01}]
    loss = {"use": "ppo", "entropy_coef": 0.5}
    scheduled, by_hand, without = build(loss=loss, scheduler=changed), build(loss=loss), build(loss=loss)
    scheduled.trainer.train()
    for _ in by_hand.trainer:
        by_hand.trainer.learner._loss.schedulable["entropy_coef"] = 0.0
    without.trainer.train()
    assert equal(scheduled, by_hand)
    assert not equal(scheduled, without)


def test_a_run_that_stops_before_its_first_update_resumes_exactly(write_config, workdir):
    """Schedules go on while frames are only collected, so that the first update has the rate of its frame."""
    epsilon = {"use": "linear", "target": "model.epsilon"}
    path = off_policy(write_config, "lr", buffer={"warmup_frames": 96}, more=[epsilon])
    path.write_text(path.read_text().replace("total_frames = 96", "total_frames = 160"))
    whole, rates = built(path), []
    policy = whole.trainer.model.policy
    for _ in whole.trainer:
        rates += [policy.epsilon, whole.trainer.metrics.latest["train/lr"]]
    batches = (0, 0.2, 0.4, 0.6, 0.8)
    assert rates[::2] == pytest.approx([1 - part for part in batches])
    assert rates[1::2] == pytest.approx([3e-4 * (1 - part - 0.2) for part in batches], abs=1e-12)
    first = built(path, write=True)
    first.trainer.stop_at = 64
    first.trainer.train()
    second = built(path, write=True, resume=True)
    second.trainer.train()
    assert equal(whole, second)


def test_scheduled_numbers_resume_where_they_were(build):
    arguments = {"scheduler": [{"use": "linear", "target": "loss.clip_epsilon"}, {"use": "cosine", "target": "lr"}]}
    whole = build(**arguments)
    seen = loss_schedule(whole, "clip_epsilon")
    first = build(write=True, **arguments)
    first.trainer.stop_at = 32
    first.trainer.train()
    second = build(write=True, resume=True, **arguments)
    assert second.trainer.learner._loss.schedulable["clip_epsilon"] == seen[0]
    assert loss_schedule(second, "clip_epsilon") == seen[1:]
    assert equal(whole, second)


def off_policy(write_config, target, model=None, buffer=None, more=(), **further):
    path = write_config(
        model={"use": "dqn:q-network", **(model or {})},
        loss={"use": "dqn"},
        estimator=None,
        buffer={"use": "replay:prioritized", "warmup_frames": 32, **(buffer or {})},
        scheduler=[{"use": "linear", "target": target, **further}, *more],
    )
    path.write_text(path.read_text().replace("epochs = 2\n", ""))  # a key of the rollout buffer
    return path


def built(path, **keys):
    return rlcore.build(rlcore.load_config(path), **{"write": False, **keys})


def test_beta_of_a_prioritized_buffer_follows_its_schedule(write_config):
    run = built(off_policy(write_config, "buffer.beta", final=2.0, buffer={"beta": 0.5}))
    seen = [run.trainer.parts.buffer.schedulable["beta"] for _ in run.trainer]
    assert seen == pytest.approx([0.5 * (1 + part) for part in (1 / 3, 2 / 3, 1)])
    assert run.trainer.metrics.latest["train/buffer.beta"] == pytest.approx(1.0)


def test_epsilon_follows_a_schedule_instead_of_the_keys_of_the_model(write_config):
    path = off_policy(write_config, "model.epsilon", final=0.1, fraction=0.5, model={"epsilon_start": 0.8})
    run = built(path)
    policy, seen = run.trainer.model.policy, []
    for _ in run.trainer:
        seen.append(policy.epsilon)
    assert seen == pytest.approx([0.8 * (1 - 0.9 * part) for part in (0, 2 / 3, 1)])  # of the batch collected last


def test_a_run_with_scheduled_epsilon_and_beta_resumes_exactly(write_config, workdir):
    path = off_policy(
        write_config, "model.epsilon", final=0.1, more=[{"use": "linear", "target": "buffer.beta", "final": 1.5}]
    )
    whole = built(path)
    whole.trainer.train()
    first = built(path, write=True)
    first.trainer.stop_at = 64
    first.trainer.train()
    second = built(path, write=True, resume=True)
    second.trainer.train()
    assert equal(whole, second)


@pytest.mark.parametrize(
    ("scheduler", "message"),
    [
        (
            [{"target": "loss.clip"}],
            "the loss declares no number 'clip'; did you mean 'clip_epsilon'.*critic_coef",
        ),
        ([{"target": "los.clip_epsilon"}], "no optimizer 'los'; did you mean 'loss'"),
        ([{"target": "betas"}], "the optimizer has no number 'betas'.*there are lr, .*loss.entropy_coef"),
        ([{"target": "lr"}, {"target": "adam.lr"}], "two of them set 'adam.lr'"),
        ([{"target": "loss.entropy_coef"}, {"target": "loss.entropy_coef"}], "two of them set 'loss.entropy_coef'"),
    ],
)
def test_a_target_that_nothing_declares_is_refused_with_what_there_is(scheduler, message, build):
    with pytest.raises(ConfigError, match=rf"\[scheduler\] target: {message}"):
        build(scheduler=[{"use": "linear", **entry} for entry in scheduler])


def test_a_schedule_and_the_keys_that_say_the_same_are_refused_together(write_config):
    path = off_policy(write_config, "model.epsilon", model={"epsilon_fraction": 0.5})
    with pytest.raises(ConfigError, match=r"'model.epsilon': \[model\] epsilon_fraction say how it falls; leave"):
        built(path)


def test_a_schedule_out_of_the_range_of_its_key_is_refused(write_config):
    path = off_policy(write_config, "buffer.beta", final=4.0)
    with pytest.raises(ConfigError, match=r"\[buffer\] beta: Input should be less than or equal to 1; found 2.0"):
        built(path)


@pytest.mark.parametrize("key", ["final", "fraction"])
def test_a_schedule_has_finite_ends(key, write_config):
    with pytest.raises(ConfigError, match=key):
        rlcore.load_config(write_config(scheduler=[{"use": "linear", key: float("inf")}]))


@pytest.mark.parametrize("kind", [Linear, Cosine])
def test_a_schedule_may_end_before_the_run_does(kind):
    schedule, whole = (kind(ScheduleConfig(final=0.25, fraction=fraction), None) for fraction in (0.5, 1.0))
    for frames in (0, 100, 400, 500):
        assert schedule.value(2.0, Progress(1000, frames=frames)) == whole.value(2.0, Progress(1000, frames=2 * frames))
    assert schedule.value(2.0, Progress(1000, frames=900)) == whole.value(2.0, Progress(1000, frames=1000))


class Limited:
    """A part that takes numbers below 1, and says so by itself."""

    def __init__(self):
        self.schedulable = {"width": 0.5}

    def check_number(self, number, value):
        if value >= 1:
            raise ConfigError(f"[loss] {number} = {value} is too wide")


class Hill:
    """Goes up to the middle of the run, and down again."""

    target = "loss.width"

    def value(self, initial, progress):
        return initial + 2 * min(progress.fraction, 1 - progress.fraction)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_part_with_limits_is_asked_about_what_a_schedule_sets(compiled):
    with pytest.raises(ConfigError, match=r"width = 1.5 is too wide \(at the end of the schedule of 'loss.width'\)"):
        bind([Linear(ScheduleConfig(target="loss.width", final=3.0), None)], {}, {"loss": Limited()})
    part = Limited()
    (hill,) = bind([Hill()], {}, {"loss": part})
    if compiled:
        hill.numbers[hill.number] = torch.tensor(hill.initial)
    hill.apply(Progress(100, frames=10))
    assert float(part.schedulable["width"]) == pytest.approx(0.7)
    with pytest.raises(ConfigError, match=r"width = 1\.5 is too wide"):
        hill.apply(Progress(100, frames=50))
