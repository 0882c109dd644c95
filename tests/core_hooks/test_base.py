"""Hook objects of a script: registering, state, checkpoints; and their way into a config."""

import pytest
import torch

import rlcore
from rlcore import HookError, OptimizerHook, StorageError, TrainerHookBase


class LoggingHook(TrainerHookBase):
    """Logs at every tenth call."""

    def __init__(self):
        self.counter = 0

    def register(self, trainer, name):
        trainer.register_module(self, "logging_hook")
        trainer.register_op("post_optim_log", self)

    def save_dict(self):
        return {"counter": self.counter}

    def load_state_dict(self, state_dict):
        self.counter = state_dict["counter"]

    def __call__(self, batch):
        if self.counter % 10 == 0:
            self.counter += 1
            out = {"some_value": batch["some_value"].item(), "log_pbar": False}
        else:
            out = None
        self.counter += 1
        return out


class Counting(TrainerHookBase):
    destinations = {"setup": "begin", "batch_process": "count", "shutdown": "end"}

    def __init__(self):
        self.attached = self.begun = self.counted = self.ended = 0

    def attach(self, trainer):
        self.attached += 1

    def begin(self):
        self.begun += self.attached

    def count(self, batch):
        self.counted += 1

    def end(self):
        self.ended += 1


def test_a_hook_that_logs_every_tenth_call(batch, make_trainer, rows, tmp_path):
    def build(count):
        batches = [batch(1, some_value=torch.tensor([float(number)])) for number in range(count)]
        trainer = make_trainer(batches, logger=rows, save_trainer_file=tmp_path / "run")
        hook = LoggingHook()
        hook.register(trainer, "name")
        return trainer, hook

    trainer, hook = build(12)
    trainer.train()
    logged = [(step, row["some_value"]) for step, row in rows.rows if "some_value" in row]
    assert logged == [(1, 0.0), (10, 9.0)], "the counter moves by two when something is logged"
    assert hook.counter == 14
    trainer.save_trainer(True)
    resumed, other = build(0)
    assert resumed.load_from_file(tmp_path / "run") is resumed
    assert other.counter == 14


def test_a_trainer_only_for_saving_and_loading(tmp_path):
    def build():
        trainer = rlcore.Trainer(
            collector=None,
            total_frames=100,
            frame_skip=1,
            progress_bar=False,
            save_trainer_file=tmp_path / "to" / "dir",
        )
        module = torch.nn.Linear(2, 2)
        Counting().register(trainer)
        trainer.register_module("policy", module)
        return trainer, module

    trainer, saved = build()
    trainer.progress.frames = 40
    assert trainer.save_trainer(True).is_dir()
    resumed, loaded = build()
    assert not torch.equal(saved.weight, loaded.weight)
    resumed.load_from_file(tmp_path / "to" / "dir")
    assert torch.equal(saved.weight, loaded.weight)
    assert resumed.collected_frames == 40


def test_a_trainer_that_saves_nothing_can_load(batch, make_trainer, tmp_path):
    trainer = make_trainer([batch(4)], save_trainer_file=tmp_path / "run")
    trainer.train()
    loading = make_trainer([])
    loading.load_from_file(tmp_path / "run")
    assert loading.collected_frames == 4


def test_state_that_nobody_takes_back_is_an_error():
    class Forgetful(TrainerHookBase):
        def save_dict(self):
            return {"count": 1}

    hook = Forgetful()
    assert hook.state_dict() == {"count": 1}
    with pytest.raises(HookError, match="Forgetful has the state count in the checkpoint and no load_state_dict"):
        hook.load_state_dict(hook.state_dict())


def test_a_class_without_destinations_says_so(make_trainer):
    with pytest.raises(HookError, match="the class has no default destinations"):
        type("Bare", (TrainerHookBase,), {})().register(make_trainer())


def test_a_hook_registers_its_methods_and_itself(batch, make_trainer):
    trainer = make_trainer([batch(4)] * 3)
    hook = Counting()
    hook.register(trainer)
    trainer.train()
    assert trainer.app_state["Counting"] is hook
    assert (hook.attached, hook.begun, hook.counted, hook.ended) == (1, 1, 3, 1)
    assert trainer.state_dict()["Counting"] == {}


def test_a_hook_object_can_be_the_hook_of_a_config(build):
    hook = Counting().as_component()
    build([hook]).trainer.train()
    assert (hook.attached, hook.begun, hook.counted, hook.ended) == (1, 1, 3, 1), "it is attached before it begins"


def test_what_is_called_together_cannot_be_reached_from_a_config():
    with pytest.raises(HookError, match="OptimizerHook: 'optimizer' cannot be reached from a config; use register_op"):
        OptimizerHook(torch.optim.SGD([torch.nn.Parameter(torch.ones(1))])).as_component()


def test_a_module_of_the_checkpoint_that_is_never_registered_is_said(batch, make_trainer, tmp_path):
    trainer = make_trainer([batch(4)], save_trainer_file=tmp_path / "run")
    Counting().register(trainer)
    trainer.train()
    resumed = make_trainer([batch(4)]).load_from_file(tmp_path / "run")
    with pytest.raises(StorageError, match="has state of Counting, which a script registered as a module"):
        resumed.train()


def test_a_log_that_returns_something_else_is_named(batch, make_trainer):
    trainer = make_trainer([batch(4)])
    trainer.register_op("pre_steps_log", lambda batch: 3.0)
    with pytest.raises(HookError, match="at point 'pre_steps_log' returned float; expected a mapping of metrics"):
        trainer.train()
