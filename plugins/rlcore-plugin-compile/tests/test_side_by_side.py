"""Losses computed side by side on several threads: the same bits, and nothing left running or half done."""

from __future__ import annotations

import gc
import logging
import os
import signal
import threading
import time
from types import SimpleNamespace

import pytest
import torch
from rlcore_plugin_compile import side_by_side as module
from rlcore_plugin_compile.side_threads import SideThread, run_side_by_side
from rlcore_plugin_gradient.learner import GradientLearner
from rlcore_plugin_gradient.optimizers import AdamConfig, SGDConfig, adam, sgd
from rlcore_plugin_testing import make_trainer
from torch import nn

from rlcore import ConfigError, Context, Progress, hookimpl
from rlcore.hooks.points import Hook, LoopHooks
from rlcore.types import RunInfo


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr(module, "usable_cores", lambda: 2 * torch.get_num_threads())


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.actor = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
        self.critic = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))

    def parts(self):
        return ("actor", "critic")


class Loss(nn.Module):
    """An actor and a critic with nothing in common; notes the thread of each side."""

    loss_names = ("loss_critic", "loss_actor", "loss_wide")
    sides = (("loss_actor", "loss_wide"), ("loss_critic",))

    def __init__(self, model):
        super().__init__()
        self.actor, self.critic = model.actor, model.critic
        self.threads = []
        self.raises = None

    def forward(self, minibatch, names=None):
        found = {}
        if "loss_critic" in names:
            self.threads.append(threading.current_thread())
            if self.raises is not None:
                raise self.raises
            error = (self.critic(minibatch["x"]) - minibatch["y"]).square().mean()
            found |= {"loss_critic": error * minibatch["spoil"], "error": error.detach().sqrt()}
        if "loss_actor" in names or "loss_wide" in names:
            action = self.actor(minibatch["x"])
            if "loss_actor" in names:
                found["loss_actor"] = (action - minibatch["y"]).square().mean()
            if "loss_wide" in names:
                found["loss_wide"] = 0.1 * action.square().mean()
        return found


class Sharing(Loss):
    """Both sides move the same body."""

    def __init__(self, model):
        super().__init__(model)
        self.critic = nn.Sequential(self.actor, nn.Linear(2, 1))


class Counting(Loss):
    """Keeps statistics while it computes."""

    def __init__(self, model):
        super().__init__(model)
        self.register_buffer("mean", torch.zeros(()))

    def forward(self, minibatch, names=None):
        self.mean.lerp_(minibatch["x"].mean(), 0.1)
        return super().forward(minibatch, names)


class Single(Loss):
    """Says nothing of sides."""

    sides = ()


ONE = (("all", adam, AdamConfig()),)
TWO = (
    ("actor", adam, AdamConfig(parameters=["actor"], losses=["loss_actor", "loss_wide"], every=2)),
    ("critic", sgd, SGDConfig(parameters=["critic"], losses=["loss_critic"])),
)
ACROSS = (
    ("actor", adam, AdamConfig(parameters=["actor"], losses=["loss_actor"])),
    ("critic", adam, AdamConfig(parameters=["critic"], losses=["loss_critic", "loss_wide"])),
)


def learner_of(parallel, optimizers=ONE, loss=Loss, hooks=None):
    model = Model()
    context = Context(RunInfo("run", 1, 1000), torch.device("cpu"), Progress(1000), "learner", "gradient")
    context.parts.update(model=model, loss=loss(model), hooks=hooks or LoopHooks())
    context.parts["optimizers"] = {
        name: kind(config, context.for_component("optimizer", name)) for name, kind, config in optimizers
    }
    return GradientLearner(GradientLearner.Config(max_grad_norm=0.5, parallel=parallel), context)


def minibatch(number=0, spoil=1.0):
    x = torch.randn(64, 4, generator=torch.Generator().manual_seed(number))
    return {"x": x, "y": x.sum(-1, keepdim=True).sin(), "spoil": torch.tensor(spoil)}


def bits(learner):
    return [parameter.detach().numpy().tobytes() for parameter in learner.model.parameters()]


@pytest.mark.parametrize("optimizers", [ONE, TWO], ids=["one optimizer", "two of two paces"])
def test_side_by_side_has_the_bits_and_metrics_of_one_after_the_other(optimizers):
    beside, after = learner_of(True, optimizers), learner_of(False, optimizers)
    for number in range(12):
        ours, theirs = (learner.update(minibatch(number)) for learner in (beside, after))
        assert list(ours) == list(theirs)
        assert all(torch.equal(ours[key], theirs[key]) for key in theirs)
        assert bits(beside) == bits(after)
    assert {thread.name for thread in beside._loss.threads} == {"MainThread", "rlcore-side"}
    assert {thread.name for thread in after._loss.threads} == {"MainThread"}


def test_a_loss_that_is_not_finite_on_the_thread_changes_nothing_on_either_side():
    learner = learner_of(True)
    learner.update(minibatch())
    before = bits(learner)
    learner.update(minibatch(spoil=float("nan")))
    assert bits(learner) == before
    assert learner._steps[0].skipped == 1


def test_an_error_on_the_thread_is_raised_here_and_leaves_no_gradient():
    learner, other = learner_of(True), learner_of(False)
    learner.update(minibatch(0))
    learner._loss.raises = ValueError("broken")
    with pytest.raises(ValueError, match="broken"):
        learner.update(minibatch(1))
    assert learner._loss.threads[-1].name == "rlcore-side"
    learner._loss.raises = None
    learner.update(minibatch(2))
    other.update(minibatch(0))
    other.update(minibatch(2))
    assert bits(learner) == bits(other)


class Between:
    @hookimpl
    def post_loss(self, losses):
        return losses


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"loss": Single}, "Single declares no `sides`"),
        ({"loss": Sharing}, "'loss_actor' and 'loss_critic' share 4 parameters"),
        ({"loss": Counting}, "computing them changes a buffer"),
        ({"optimizers": ACROSS}, "an optimizer minimises losses of two sides"),
        ({"hooks": LoopHooks([Hook("between", Between())])}, "a hook comes between loss and step"),
    ],
)
def test_what_cannot_be_side_by_side_is_refused_where_it_is_asked_for_and_left_alone_otherwise(keys, message):
    with pytest.raises(ConfigError, match=r"\[learner\] parallel = true: .*" + message):
        learner_of(True, **keys).update(minibatch())
    for parallel in (None, False):
        learner = learner_of(parallel, **keys)
        for number in range(3):
            learner.update(minibatch(number))
        assert {thread.name for thread in learner._loss.threads} == {"MainThread"}


@pytest.fixture
def told_times(monkeypatch):
    """A clock that says how long an update takes on one thread, and on several: what is measured depends on both."""
    clock = SimpleNamespace(now=0.0, alone=3.0, beside=2.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: clock.now))

    def taking(name, inner):
        def update(*arguments):
            clock.now += getattr(clock, name)
            return inner(*arguments)

        return update

    for way, name in (("_one_after_the_other", "alone"), ("_beside", "beside")):
        monkeypatch.setattr(module.SideBySide, way, taking(name, getattr(module.SideBySide, way)))
    return clock


def test_the_faster_way_is_kept_where_the_config_leaves_it_open(told_times, caplog):
    caplog.set_level(logging.DEBUG)
    learner = learner_of(None)
    for number in range(30):
        learner.update(minibatch(number))
    assert learner._beside.over is None
    assert "side by side on 2 threads" in caplog.text
    assert {thread.name for thread in learner._loss.threads[-4:]} == {"rlcore-side"}


def test_one_thread_is_kept_where_two_take_as_long(told_times, caplog):
    caplog.set_level(logging.DEBUG)
    told_times.beside = told_times.alone
    learner, other = learner_of(None), learner_of(False)
    for number in range(30):
        learner.update(minibatch(number))
        other.update(minibatch(number))
    assert learner._beside.over is not None
    assert "one after the other" in caplog.text
    assert bits(learner) == bits(other)


def test_one_core_is_enough_only_where_it_is_asked_for(monkeypatch, caplog):
    monkeypatch.setattr(module, "usable_cores", lambda: 1)
    assert learner_of(None)._beside is None
    assert learner_of(True)._beside is not None
    assert "one core" in caplog.text


def test_sides_that_would_have_more_threads_than_cores_are_not_tried(monkeypatch):
    monkeypatch.setattr(module, "usable_cores", lambda: 2)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert learner_of(None)._beside is None
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    assert learner_of(None)._beside is not None


def test_ctrl_c_waits_for_the_thread_and_the_next_task_is_done():
    thread, ended = SideThread(), []

    def interrupt(*_):
        raise KeyboardInterrupt

    def slow():
        time.sleep(0.2)
        ended.append(1)

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            run_side_by_side([lambda: None, slow], [thread])
    finally:
        signal.signal(signal.SIGALRM, before)
    assert ended == [1]
    assert run_side_by_side([lambda: 1, lambda: 2], [thread]) == [1, 2]


def test_the_thread_ends_with_its_owner_and_computes_with_its_number_of_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        thread = SideThread()
        found = run_side_by_side(
            [lambda: None, lambda: (torch.get_num_threads(), threading.current_thread())], [thread]
        )
    finally:
        torch.set_num_threads(before)
    count, running = found[1]
    assert count == 3
    del thread
    gc.collect()
    running.join(5)
    assert not running.is_alive()


@pytest.fixture
def one_torch_thread():
    """A process forked from one whose operators used several threads waits for ever at its own first such operator."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_a_forked_process_gets_a_thread_of_its_own(one_torch_thread):
    learner, other = learner_of(True), learner_of(False)
    for number in range(3):
        learner.update(minibatch(number))
    pid = os.fork()
    if pid == 0:
        learner.update(minibatch(3))
        other_bits = bits(learner)
        for number in range(4):
            other.update(minibatch(number))
        os._exit(0 if other_bits == bits(other) else 1)
    deadline = time.monotonic() + 20
    while (ended := os.waitpid(pid, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.01)
    if ended == (0, 0):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert ended == (pid, 0)


PPO = ("loss.use=ppo", "estimator.use=gae", "learner.max_grad_norm=0.5", "run.total_frames=256")


def test_a_run_of_ppo_goes_on_with_the_other_setting_as_if_it_had_been_so_from_the_start(tmp_path):
    digests = []
    for name, first, second in (("off", "false", "false"), ("on", "true", "true"), ("changed", "false", "true")):
        folder = tmp_path / name
        trainer = make_trainer(*PPO, f"learner.parallel={first}", "checkpoint.every=128", folder=folder)
        for _ in trainer:
            if trainer.progress.frames >= 128:
                trainer.request_stop("half way")
        trainer = make_trainer(*PPO, f"learner.parallel={second}", "checkpoint.every=128", folder=folder, resume=True)
        trainer.train()
        digests.append([value.numpy().tobytes() for value in trainer.model.state_dict().values()])
    assert digests[0] == digests[1] == digests[2]
