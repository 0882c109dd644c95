"""Each method of TorchRL's trainer, overridden in turn: it is called, or the class is refused by name."""

from __future__ import annotations

import pytest
import torch

import rlcore
from rlcore import Trainer
from rlcore.errors import NotSupportedError
from rlcore.types import originals
from tests.trainer.scripts import Batches, Regression, Rows

NAMES = originals("rlcore.scripts")["names"]["Trainer"]


def recording(name, calls):
    """Return a trainer class that overrides a name, and notes each call or look at it."""
    there = getattr(Trainer, name, None)

    def method(self, *arguments, **keywords):
        calls.append(name)
        return there(self, *arguments, **keywords) if there is not None else None

    def look(self):
        calls.append(name)
        return there.fget(self)

    if isinstance(there, property):
        return type("Own", (Trainer,), {name: property(look, there.fset)})
    return type("Own", (Trainer,), {name: method})


def use(kind, folder):
    """Do with a trainer all that scripts do with one."""
    loss = Regression()
    trainer = kind(
        collector=Batches(2), total_frames=32, frame_skip=1, optim_steps_per_batch=2, loss_module=loss,
        optimizer=torch.optim.SGD(loss.parameters(), lr=0.1), logger=Rows(), progress_bar=False, seed=1,
        log_interval=16, save_trainer_interval=16, save_trainer_file=folder,
    )  # fmt: skip
    trainer.register_op("post_steps_log", lambda batch: {"mine": 1.0, "log_pbar": True})
    trainer.register_hook("post_steps", lambda: trainer.request_stop() if trainer.collected_frames == 32 else None)
    trainer.register_module("table", torch.nn.Linear(1, 1))
    trainer.train()
    assert trainer.app_state
    assert trainer.collector is not None
    trainer.load_from_file(folder)
    trainer.shutdown()
    return trainer


@pytest.mark.parametrize("name", NAMES)
def test_a_method_that_is_overridden_is_called_or_refused(name, tmp_path):
    calls = []
    try:
        use(recording(name, calls), tmp_path)
    except NotSupportedError as refused:
        assert str(refused).startswith(f"Own.{name} would never be called: TorchRL calls it")  # noqa: PT017
        assert not calls
    else:
        assert calls


def test_what_is_refused_says_what_to_do():
    class Own(Trainer):
        def _post_steps_hook(self):
            pass

    with pytest.raises(NotSupportedError, match=r"register_op\('post_steps', operation\) has it called"):
        Own(collector=[], total_frames=1)


def test_a_batch_is_processed_outside_of_train_as_inside():
    trainer = Trainer(collector=Batches(1), total_frames=None, loss_module=Regression(), progress_bar=False)
    batch = next(iter(Batches(1)))
    assert trainer._process_batch_hook(batch) is batch
    trainer.register_op("batch_process", lambda batch: batch[:, :2])
    trainer.register_op("batch_process", lambda batch: None)
    assert trainer._process_batch_hook(batch).batch_size == (2, 2)


def test_the_call_of_a_hook_that_is_not_here_says_what_to_do():
    trainer = Trainer(collector=[], total_frames=1, loss_module=Regression(), progress_bar=False)
    with pytest.raises(AttributeError, match=r"no attribute '_post_steps_hook'; register_op\('post_steps',"):
        trainer._post_steps_hook()


def test_a_private_name_of_the_loop_is_refused():
    class Own(Trainer):
        def _learn(self):
            pass

    with pytest.raises(NotSupportedError, match="_learn is a name of rlcore's own; choose another one"):
        Own(collector=[], total_frames=1)


def test_a_mixin_may_override_and_names_of_ones_own_are_free(tmp_path):
    class Saves:
        def save_trainer(self, force_save=False):
            self.asked.append(force_save)
            return super().save_trainer(force_save)

    class Own(Saves, Trainer):
        asked = ()

        def helper(self):
            pass

        def __init__(self, **arguments):
            super().__init__(**arguments)
            self.asked = []

    assert use(Own, tmp_path).asked == [False, False, True]


def test_an_override_beside_another_class_of_rlcore_is_called(tmp_path):
    class Saves:
        def save_trainer(self, force_save=False):
            calls.append(force_save)
            super().save_trainer(force_save)

    named = type("Named", (), {"__module__": "rlcore.named"})

    class Own(named, Saves, Trainer):
        def optim_steps(self, batch):
            calls.append(batch)
            super().optim_steps(batch)

    calls = []
    use(Own, tmp_path)
    assert sum(isinstance(call, bool) for call in calls) == 3
    assert len(calls) == 5


def test_what_is_logged_goes_through_the_method_of_a_script(tmp_path):
    class Own(Trainer):
        def _log(self, log_pbar=False, **values):
            shown.append((log_pbar, set(values)))
            super()._log(log_pbar=log_pbar, **{f"own/{name}": value for name, value in values.items()})

    shown = []
    trainer = use(Own, tmp_path)
    assert {name for _, names in shown for name in names} >= {"mine", "optim_steps", "loss_actor", "grad_norm_0"}
    assert any(bar for bar, names in shown if "mine" in names)
    assert trainer.metrics.newest("own/mine") == 1.0
    assert trainer.metrics.newest("mine") is None


def test_the_losses_of_a_script_are_those_that_it_computes(tmp_path):
    class Own(Trainer):
        def compute_loss(self, sub_batch, method=None):
            return {name: 0 * loss for name, loss in super().compute_loss(sub_batch, method).items()}

    torch.manual_seed(0)
    untouched = Regression().state_dict()
    torch.manual_seed(0)
    weights = use(Own, tmp_path).loss_module.state_dict()
    assert all(torch.equal(weights[name], value) for name, value in untouched.items())
    assert rlcore.Trainer is Trainer
