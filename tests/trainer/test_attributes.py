"""Arguments of `Trainer` as attributes: numbers may be set, what it was built of stays, and no other ones exist."""

from __future__ import annotations

import pytest
import torch
from rlcore_plugin_gradient.schedules import Linear, ScheduleConfig
from rlcore_plugin_testing import make_trainer as make_configured

from rlcore import ConfigError, LRSchedulerHook, TargetNetUpdaterHook, Trainer, hookimpl
from rlcore.errors import MissingStateError, NoSuchAttributeError
from rlcore.scripts.trainer import SETTABLE
from rlcore.training.foreign import INSTEAD
from tests.trainer.scripts import Batches, Regression, Rows, make, make_batch, weights


class Counter:
    """An updater of targets, or a stepper, that counts."""

    def __init__(self, loss=None):
        self.steps, self.loss = 0, loss

    def step(self, *arguments):
        self.steps += 1
        return {} if self.loss is None else {"loss_actor": torch.zeros(())}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("total_frame", "did you mean 'total_frames'"),
        ("save_trainer_fil", "did you mean 'save_trainer_file'"),
        ("greedy_module", "make a subclass"),
        ("_log_interval", "use log_interval"),
        ("_optim_count", r"use progress\.updates"),
        ("_post_steps_ops", "use register_op"),
    ],
)
def test_an_attribute_that_does_not_exist_is_refused(name, hint):
    trainer = make()
    with pytest.raises(NoSuchAttributeError, match=hint) as caught:
        setattr(trainer, name, 1)
    assert isinstance(caught.value, AttributeError)
    assert not hasattr(trainer, name)


def test_a_subclass_may_have_any_but_those_that_would_be_without_effect():
    class Mine(Trainer):
        def __init__(self, **arguments):
            self.early = 1
            super().__init__(**arguments)
            self.greedy_module = torch.nn.Identity()

    trainer = Mine(collector=Batches(), total_frames=16, progress_bar=False)
    trainer.late = 2
    trainer._own = 3
    assert (trainer.early, trainer.late) == (1, 2)
    with pytest.raises(NoSuchAttributeError):
        trainer._log_interval = 1


def test_a_subclass_may_keep_what_it_is_about_to_hand_over():
    class Mine(Trainer):
        def __init__(self):
            with pytest.raises(AttributeError, match=r"Mine\.collector is not set before Trainer\.__init__"):
                self.collector  # noqa: B018
            self.collector, self.clip_norm, self._own_ops = Batches(), 3.0, []
            super().__init__(collector=self.collector, total_frames=16, progress_bar=False)

    trainer = Mine()
    assert isinstance(trainer.collector, Batches)
    assert trainer.clip_norm is None  # what the constructor says is later
    assert trainer._own_ops == []


def test_a_trainer_of_a_config_shows_them_and_leaves_changing_to_the_config():
    trainer = make_configured("run.total_frames=32")
    assert trainer.total_frames == 32
    assert trainer.seed == trainer.run_info.seed
    assert trainer.num_epochs == trainer.buffer.num_epochs
    for name, value in (("total_frames", 64), ("clip_norm", 1.0), ("logger", Rows())):
        with pytest.raises(ConfigError, match=f"{name}: this trainer was built from a config"):
            setattr(trainer, name, value)
    with pytest.raises(NoSuchAttributeError):
        trainer.total_frame = 3
    trainer.stop_at = 16


def test_a_trainer_of_a_config_is_a_loop_with_operations_modules_and_a_folder(tmp_path):
    trainer = make_configured("run.total_frames=32", folder=tmp_path / "run")
    module, frames = torch.nn.Linear(2, 1), []
    trainer.register_module("mine", module)
    trainer.register_op("post_steps", lambda: frames.append(trainer.collected_frames))
    trainer.train()
    assert not isinstance(trainer, Trainer)
    assert frames[-1] == 32
    assert trainer.app_state["mine"] is module
    again = make_configured("run.total_frames=32", folder=tmp_path / "again")
    again.load_state_dict(trainer.state_dict(), owners=trainer.parts.provenance.owners)
    with pytest.raises(MissingStateError, match="mine"):
        again.train()
    other = torch.nn.Linear(2, 1)
    again.register_module("mine", other)
    assert torch.equal(other.weight, module.weight)


@pytest.mark.parametrize("name", ["progress", "run_info", "seed"])
def test_a_subclass_that_asks_before_the_trainer_is_built_is_told_so(name):
    class Early(Trainer):
        def __init__(self, **arguments):
            getattr(self, name)
            super().__init__(**arguments)

    with pytest.raises(AttributeError, match=rf"Early\.{name} is not .* before"):
        Early(collector=[], total_frames=1)


@pytest.mark.parametrize("use", sorted(set(INSTEAD.values())))
def test_what_a_private_attribute_of_another_library_is_told_to_be_is_there(use):
    expression = use.partition(",")[0]
    name, call, _ = expression.partition("(")
    value = make()
    for part in name.split("."):
        value = getattr(value, part)
    assert callable(value) == bool(call)


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("total_frames", 0, ValueError),
        ("total_frames", "9", TypeError),
        ("num_epochs", -1, ValueError),
        ("learner_backend", "ray", ValueError),
        ("collector", 3, ValueError),
        ("log_interval", 0, ValueError),
    ],
)
def test_a_value_that_cannot_be_is_refused_and_nothing_changes(name, value, kind):
    trainer = make()
    before = getattr(trainer, name)
    with pytest.raises(ConfigError, match=name.removeprefix("log_")) as caught:
        setattr(trainer, name, value)
    assert isinstance(caught.value, kind)
    assert getattr(trainer, name) is before
    trainer.train()
    assert trainer.collected_frames == 64


def test_a_value_that_is_set_in_the_middle_of_a_run_counts_from_the_next_iteration_on():
    trainer = make(total_frames=64, optim_steps_per_batch=1)
    updates = []
    for progress in trainer:
        updates.append(progress.updates)
        trainer.optim_steps_per_batch = 3
        trainer.progress_bar = not trainer.progress_bar
    assert updates == [1, 4, 7, 10]


def test_targets_move_once_where_a_script_hands_the_updater_over_and_registers_a_hook_too():
    updater = Counter()
    trainer = make(total_frames=16, target_net_updater=updater)
    TargetNetUpdaterHook(updater).register(trainer, "mine")
    trainer.train()
    assert updater.steps == 2


@pytest.mark.parametrize("name", sorted(make()._arguments - {*SETTABLE}))
def test_what_the_trainer_was_built_of_stays(name):
    trainer = make()
    before = getattr(trainer, name)
    with pytest.raises(ConfigError, match=f"{name} is what it was when the trainer was built"):
        setattr(trainer, name, Batches())
    assert getattr(trainer, name) is before


@pytest.mark.parametrize(("argument", "value"), [("num_epochs", 2), ("optim_steps_per_batch", None)])
def test_another_count_of_steps_leaves_what_is_saved(argument, value):
    replay = Batches()  # whatever has a state
    trainer = make(replay_buffer=replay)
    setattr(trainer, argument, value)
    assert trainer.app_state["buffer"] is replay


@pytest.mark.parametrize("bar", [True, False])
def test_a_run_without_an_end_ends_whole_with_its_data(bar, tmp_path, capfd):
    rows = Rows()
    trainer = make(Batches(3), total_frames=None, progress_bar=bar, logger=rows, save_trainer_file=tmp_path)
    trainer.train()
    assert trainer.progress.frames == 48
    assert trainer.stop_reason == "the collector has no more batches"
    assert rows.of("optim_steps") == [(6.0, 48)], "what had come in was written at the end"
    assert "%" not in capfd.readouterr().err
    again = make(Batches(5), total_frames=None)
    again.load_from_file(tmp_path)
    again.train()
    whole = make(Batches(5), total_frames=None)
    whole.train()
    assert all(torch.equal(value, weights(whole)[name]) for name, value in weights(again).items())


def test_a_run_without_an_end_is_stopped(tmp_path):
    class Stop:
        @hookimpl
        def post_steps(self, trainer):
            if trainer.progress.frames >= 32:
                trainer.request_stop("enough")

    trainer = make(total_frames=None, hooks=[Stop()], save_trainer_file=tmp_path)
    trainer.train()
    assert (trainer.progress.frames, trainer.stop_reason) == (32, "enough")
    trainer = make(total_frames=None)
    trainer.total_frames = 16
    trainer.train()
    assert trainer.progress.frames == 16


def test_a_share_of_a_run_without_an_end_is_refused_before_it_begins():
    trainer = make(total_frames=None)
    schedule = Linear(ScheduleConfig(), None)
    with pytest.raises(ConfigError, match="total_frames = None: something is scheduled by the fraction"):
        LRSchedulerHook(schedule).register(trainer)


def test_optimisation_outside_of_training_calls_what_is_registered():
    called = []
    trainer = make(loss=Regression(), optim_steps_per_batch=2)
    before = weights(trainer)
    for name in ("pre_optim_steps", "post_loss", "post_optim", "post_optim_log", "post_epoch"):
        trainer.register_op(name, lambda *arguments, name=name: called.append(name))
    trainer.optim_steps(make_batch(1))
    assert called == ["pre_optim_steps", *["post_loss", "post_optim", "post_optim_log"] * 2, "post_epoch"]
    assert trainer.progress.updates == 2
    assert not torch.equal(weights(trainer)["actor.weight"], before["actor.weight"])
    trainer.register_op("post_epoch", lambda: called.append("later"))
    trainer.optim_steps(make_batch(1))
    assert called[-1] == "later"


class OnlyState:
    """A collector that cannot be iterated, for a trainer that saves and loads."""

    def state_dict(self):
        return {"position": 3}

    def load_state_dict(self, state):
        self.position = state["position"]


def test_a_collector_that_cannot_be_iterated_is_saved_and_loaded_and_refused_when_training_begins(tmp_path):
    trainer = make(OnlyState(), total_frames=None, frame_skip=None, save_trainer_file=tmp_path)
    trainer.save_trainer(True)
    again = make(OnlyState())
    again.load_from_file(tmp_path)
    assert again.collector.position == 3
    with pytest.raises(ConfigError, match="a OnlyState cannot be iterated"):
        again.train()


class OnlySteps:
    """An optimizer of a script that has neither parameters nor a state."""

    param_groups = [{"params": []}]


def test_an_optimizer_without_a_state_can_be_handed_over(tmp_path):
    trainer = make(optimizer=OnlySteps(), save_trainer_file=tmp_path)
    trainer.save_trainer(True)
    make(optimizer=OnlySteps()).load_from_file(tmp_path)


@pytest.mark.parametrize("flag", [True, False])
def test_optimisation_outside_of_training_counts_and_logs(flag):
    trainer = make(auto_log_optim_steps=flag)
    trainer.optim_steps(make_batch(1))
    assert trainer.metrics.newest("optim_steps") == (2 if flag else None)
    assert (trainer.metrics.newest("loss_actor") is not None) is flag
