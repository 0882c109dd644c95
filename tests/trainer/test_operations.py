"""`register_op`: what an operation at each destination is called with, and what becomes of its return value."""

from __future__ import annotations

import pytest
import torch
from rlcore_plugin_testing import make_trainer
from tensordict import TensorDict

from rlcore import HookError, hookimpl
from rlcore.hooks.operations import DESTINATIONS
from tests.trainer.scripts import Regression, make, make_batch

ORDER = [
    "setup",
    "batch_process",
    "pre_steps_log",
    "pre_optim_steps",
    "pre_epoch_log",
    "pre_epoch",
    "process_optim_batch",
    "post_loss",
    "process_loss",
    "optimizer",
    "post_optim",
    "post_optim_log",
    "post_epoch_log",
    "post_epoch",
    "post_optim_complete_log",
    "post_steps",
    "post_steps_log",
    "shutdown",
]
# what an operation returns that changes nothing
NOTHING = dict.fromkeys(ORDER)


def record(trainer, calls, destinations=ORDER):
    def recorder(destination):
        def operation(*arguments, **keywords):
            calls.append((destination, arguments, keywords))

        return operation

    for destination in destinations:
        trainer.register_op(destination, recorder(destination))


def test_the_order_of_all_destinations():
    calls = []
    trainer = make([make_batch(1)], optim_steps_per_batch=1)
    record(trainer, calls)
    trainer.train()
    assert [name for name, _, _ in calls] == ORDER
    assert set(ORDER) == set(DESTINATIONS)


def test_what_each_destination_is_called_with():
    calls = []
    batch = make_batch(1)
    trainer = make([batch], optim_steps_per_batch=1, clip_norm=0.25)
    record(trainer, calls)
    trainer.train()
    arguments = {name: given for name, given, _ in calls}
    for name in ("setup", "pre_optim_steps", "post_optim", "post_epoch", "post_steps", "shutdown"):
        assert arguments[name] == ()
    for name in ("batch_process", "pre_steps_log", "pre_epoch_log", "pre_epoch", "process_optim_batch", "post_loss"):
        assert [given is batch for given in arguments[name]] == [True]
    for name in ("post_optim_log", "post_epoch_log", "post_steps_log"):
        assert [given is batch for given in arguments[name]] == [True]
    sub_batch, losses = arguments["process_loss"]
    assert sub_batch is batch
    assert isinstance(losses, TensorDict)
    losses, clip_grad_norm, clip_norm, index = arguments["optimizer"]
    assert (clip_grad_norm, clip_norm, index) == (True, 0.25, 1), "the optimizer that was handed over comes first"
    count, means = arguments["post_optim_complete_log"]
    assert count == 1
    assert set(means) == {"loss_actor", "loss_critic", "error", "grad_norm_0"}


def test_further_arguments_are_passed_on_every_call():
    calls = []
    trainer = make(total_frames=32)
    trainer.register_op("post_steps", lambda **keywords: calls.append(keywords), frames=7)
    trainer.train()
    assert calls == [{"frames": 7}, {"frames": 7}]


def test_operations_of_one_destination_run_in_order_of_registration():
    seen = []
    trainer = make([make_batch(1)])
    for name in "abc":
        trainer.register_op("batch_process", lambda batch, name=name: seen.append(name))
    trainer.register_hook("batch_process", lambda batch: seen.append("d"))
    trainer.train()
    assert seen == ["a", "b", "c", "d"]


@pytest.mark.parametrize("destination", ["batch_process", "pre_epoch", "process_optim_batch"])
def test_a_returned_batch_replaces_the_batch_for_all_that_follow(destination):
    seen = []
    trainer = make([make_batch(1)], optim_steps_per_batch=1)
    trainer.register_op(destination, lambda batch: batch.clone().set("mark", torch.ones(2, 8)))
    trainer.register_op(destination, lambda batch: seen.append("mark" in batch))
    trainer.register_op("post_optim_log", lambda batch: seen.append("mark" in batch))
    trainer.train()
    assert seen == [True, True]


def test_each_epoch_begins_with_the_collected_batch():
    seen = []
    trainer = make([make_batch(1)], num_epochs=2)

    def mark(batch):
        seen.append("mark" in batch)
        return batch.clone().set("mark", torch.ones(2, 8))

    trainer.register_op("pre_epoch", mark)
    trainer.train()
    assert seen == [False, False]


def test_post_loss_hands_a_batch_to_the_next_operation_there_and_to_nobody_else():
    seen = []
    trainer = make([make_batch(1)], optim_steps_per_batch=2)
    trainer.register_op("post_loss", lambda batch: batch.clone().set("mark", torch.ones(2, 8)))
    trainer.register_op("post_loss", lambda batch: seen.append(("post_loss", "mark" in batch)))
    trainer.register_op("process_loss", lambda batch, losses: seen.append(("process_loss", "mark" in batch)))
    trainer.register_op("post_optim_log", lambda batch: seen.append(("post_optim_log", "mark" in batch)))
    trainer.train()
    step = [("post_loss", True), ("process_loss", False), ("post_optim_log", False)]
    assert seen == step * 2


def test_process_loss_comes_after_post_loss_whichever_was_registered_first():
    seen = []
    trainer = make([make_batch(1)], optim_steps_per_batch=1)
    trainer.register_op("process_loss", lambda batch, losses: seen.append("process_loss"))
    trainer.register_op("post_loss", lambda batch: seen.append("post_loss"))
    trainer.train()
    assert seen == ["post_loss", "process_loss"]


def test_returned_losses_are_those_that_are_minimised():
    loss = Regression()
    trainer = make([make_batch(1)], loss=loss, optimizer=torch.optim.SGD(loss.parameters(), lr=1.0))
    before = {name: value.clone() for name, value in loss.state_dict().items()}
    trainer.register_op("process_loss", lambda batch, losses: losses.set("loss_actor", losses["loss_actor"] * 0))
    trainer.train()
    assert torch.equal(loss.actor.weight, before["actor.weight"])
    assert not torch.equal(loss.critic.weight, before["critic.weight"])


def test_an_optimizer_operation_may_replace_the_losses_that_are_logged():
    trainer = make([make_batch(1)], optimizer=None, log_interval=16)
    trainer.register_op("optimizer", lambda losses, *clipping: {"only": torch.ones((), requires_grad=True)})
    trainer.train()
    assert trainer.metrics.latest["only"] == 1.0
    assert "loss_actor" not in trainer.metrics.latest


@pytest.mark.parametrize(
    "destination",
    ["pre_steps_log", "pre_epoch_log", "post_optim_log", "post_epoch_log", "post_optim_complete_log", "post_steps_log"],
)
def test_returned_metrics_are_logged_and_shown_on_the_bar_when_asked(destination):
    trainer = make([make_batch(1)], log_interval=16)
    trainer.register_op(destination, lambda *arguments: {"mine": 5.0, "log_pbar": True})
    trainer.register_op(destination, lambda *arguments: {"quiet": 6.0, "log_pbar": False})
    trainer.train()
    assert (trainer.metrics.latest["mine"], trainer.metrics.latest["quiet"]) == (5.0, 6.0)
    assert trainer.metrics.on_bar == {"mine"}


def test_an_operation_that_is_taken_away_is_called_no_more():
    class Both:
        def __init__(self):
            self.calls = []

        def before(self):
            self.calls.append("before")

        def after(self):
            self.calls.append("after")

    both = Both()
    trainer = make(total_frames=64)
    trainer.register_op("pre_optim_steps", both.before)
    trainer.register_op("post_steps", both.after)
    for progress in trainer:
        if progress.iterations == 1:
            trainer.unregister_op(both.before, "pre_optim_steps")
        if progress.iterations == 2:
            trainer.unregister_op(both)
    assert both.calls == ["before", "after", "after"]
    with pytest.raises(HookError, match="is not registered"):
        trainer.unregister_op(both)
    with pytest.raises(HookError, match="is not registered at 'setup'"):
        trainer.unregister_op(print, "setup")


def test_an_operation_that_is_added_in_the_middle_is_called_from_the_next_iteration_on():
    seen = []
    trainer = make(total_frames=48)

    def add():
        if trainer.progress.iterations == 1:
            trainer.register_op("post_steps_log", lambda batch: seen.append(trainer.progress.iterations))

    trainer.register_op("post_steps", add)
    trainer.train()
    assert seen == [2, 3]


def test_operations_run_after_the_hooks_of_a_config():
    seen = []

    class Configured:
        @hookimpl
        def post_loss(self, losses, minibatch):
            seen.append("hook")

    trainer = make_trainer("run.total_frames=32", "loss.use=ppo", hooks=[Configured()])
    trainer.register_op("process_loss", lambda batch, losses: seen.append("operation"))
    trainer.register_op("post_steps", lambda: seen.append("end"))
    trainer.train()
    assert seen[:2] == ["hook", "operation"]
    assert seen.count("end") == trainer.progress.iterations


@pytest.mark.parametrize("destination", [name for name in ORDER if name not in ("shutdown",)])
def test_an_error_keeps_its_type_and_names_the_operation_and_the_point(destination):
    class Failing:
        def __call__(self, *arguments):
            raise KeyError("no such entry")

    failing = Failing()
    trainer = make([make_batch(1)])
    trainer.register_op(destination, failing)
    with pytest.raises(KeyError) as raised:
        trainer.train()
    notes = "\n".join(raised.value.__notes__)
    assert "hook 'Failing' (this script)" in notes
    assert f"at point {DESTINATIONS[destination].point!r}" in notes


def test_the_name_of_a_registered_module_is_that_of_its_operations():
    class Failing:
        def __call__(self, *arguments):
            raise KeyError("no such entry")

        def state_dict(self):
            return {}

        def load_state_dict(self, state):
            pass

    failing = Failing()
    trainer = make([make_batch(1)])
    trainer.register_op("post_steps", failing)
    trainer.register_module("my_module", failing)
    with pytest.raises(KeyError) as raised:
        trainer.train()
    assert any("hook 'my_module'" in note for note in raised.value.__notes__)


@pytest.mark.parametrize(
    "destination", ["batch_process", "pre_epoch", "process_optim_batch", "post_loss", "process_loss", "optimizer"]
)
def test_a_return_value_of_a_wrong_type_is_an_error_that_names_operation_and_point(destination):
    def returns_a_number(*arguments):
        return 3

    trainer = make([make_batch(1)])
    trainer.register_op(destination, returns_a_number)
    with pytest.raises(HookError, match=r"returns_a_number.*at point .* returned int; expected"):
        trainer.train()


@pytest.mark.parametrize("destination", [name for name in ORDER if name.endswith("log")])
def test_metrics_of_a_wrong_type_are_an_error(destination):
    trainer = make([make_batch(1)])
    trainer.register_op(destination, lambda *arguments: 3)
    with pytest.raises(HookError, match="expected a mapping of metrics, or None"):
        trainer.train()


@pytest.mark.parametrize(
    "destination", ["setup", "pre_optim_steps", "post_optim", "post_epoch", "post_steps", "shutdown"]
)
def test_what_an_operation_returns_where_nothing_is_asked_is_left_out(destination):
    trainer = make([make_batch(1)])
    trainer.register_op(destination, lambda: 3)
    assert trainer.train().frames == 16


def test_destinations_and_operations_that_cannot_be_used():
    trainer = make()
    with pytest.raises(HookError, match=r"'post_losses' is not a destination; did you mean 'post_loss'\?"):
        trainer.register_op("post_losses", print)
    with pytest.raises(HookError, match="cannot be called"):
        trainer.register_op("post_loss", 3)


class Told:
    """A hook object that is no subclass of ours."""

    def __init__(self):
        self.trainers = []

    def register(self, trainer, name="told"):
        trainer.register_op("post_steps", self)

    def attach(self, trainer):
        self.trainers.append(trainer)

    def __call__(self):
        pass


def test_a_hook_object_is_told_of_its_trainer_once():
    trainer, hook = make(), Told()
    trainer.register_op("post_optim", hook)
    hook.register(trainer)
    assert hook.trainers == [trainer]
