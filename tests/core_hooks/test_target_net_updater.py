"""TargetNetUpdaterHook moves target networks."""

import pytest

from rlcore import HookError, TargetNetUpdaterHook


class Updater:
    def __init__(self):
        self.steps = 0

    def step(self):
        self.steps += 1

    def state_dict(self):
        return {"steps": self.steps}

    def load_state_dict(self, state):
        self.steps = state["steps"]


def test_targets_move_after_every_optimisation_step(batch, make_trainer):
    updater = Updater()
    trainer = make_trainer([batch(4)] * 2, optim_steps_per_batch=3)
    TargetNetUpdaterHook(updater).register(trainer)
    trainer.train()
    assert updater.steps == 6


def test_the_state_is_that_of_the_updater():
    hook, resumed = TargetNetUpdaterHook(Updater()), TargetNetUpdaterHook(Updater())
    hook()
    resumed.load_state_dict(hook.state_dict())
    assert resumed.target_params_updater.steps == 1


def test_an_updater_without_state_is_fine():
    hook = TargetNetUpdaterHook(type("Plain", (), {"step": lambda self: None})())
    assert hook.state_dict() == {}
    hook.load_state_dict({})


def test_what_cannot_move_targets_is_refused():
    with pytest.raises(HookError, match=r"a dict has no step\(\)"):
        TargetNetUpdaterHook({})
