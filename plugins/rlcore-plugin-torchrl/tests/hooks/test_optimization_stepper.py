"""Steppers own an optimisation step."""

import pytest
import torch

from rlcore import DefaultOptimizationStepper, HookError, NumericalError, OptimizationStepper


class Delayed(OptimizationStepper):
    """Takes every second step."""

    def __init__(self, optimizer):
        self.optimizer = optimizer
        self.calls = 0

    def step(self, trainer, sub_batch):
        self.calls += 1
        loss = trainer.compute_loss(sub_batch)["loss_square"]
        loss.backward()
        if self.calls % 2 == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()
        return {"loss_square": loss.detach()}

    def state_dict(self):
        return {"calls": self.calls, "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state):
        self.calls = state["calls"]
        self.optimizer.load_state_dict(state["optimizer"])


@pytest.fixture
def loss(make_trainer):
    return make_trainer().loss_module


@pytest.mark.parametrize("clipping", [{}, {"clip_norm": 0.1}, {"clip_norm": 0.01, "clip_grad_norm": False}])
def test_the_default_steps_as_an_optimizer_alone_does(batch, make_trainer, clipping):
    weights, norms = [], []
    for stepper, key in ((None, "grad_norm_0"), (DefaultOptimizationStepper(), "grad_norm")):
        loss = make_trainer().loss_module
        arguments = {"optimizer": torch.optim.Adam(loss.parameters(), lr=0.1), "optimization_stepper": stepper}
        trainer = make_trainer([batch(8)] * 3, loss_module=loss, **arguments, **clipping)
        trainer.train()
        weights.append(loss.actor.weight.detach().clone())
        norms.append(trainer.metrics.newest(key))
    assert torch.equal(*weights)
    assert norms[0] == norms[1] > 0


def test_only_the_chosen_losses_are_minimised(batch, make_trainer):
    class Two(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Parameter(torch.ones(())), torch.nn.Parameter(torch.ones(()))

        def forward(self, batch):
            return {"loss_a": self.a**2, "loss_b": self.b**2}

    loss = Two()
    optimizer = torch.optim.SGD(loss.parameters(), lr=0.1)
    stepper = DefaultOptimizationStepper(["loss_b"])
    make_trainer([batch(4)], loss_module=loss, optimizer=optimizer, optimization_stepper=stepper).train()
    assert (loss.a.item(), round(loss.b.item(), 4)) == (1.0, 0.8)


def test_a_loss_that_is_not_finite_stops_the_run(batch, make_trainer):
    def loss(batch):
        return {"loss": parameter * float("nan")}

    parameter = torch.nn.Parameter(torch.ones(()))
    optimizer = torch.optim.Adam([parameter])
    stepper = DefaultOptimizationStepper()
    trainer = make_trainer([batch(4)], loss_module=loss, optimizer=optimizer, optimization_stepper=stepper)
    with pytest.raises(NumericalError, match="1 steps of Adam"):
        trainer.train()
    assert parameter.item() == 1.0


def test_the_default_needs_an_optimizer(batch, make_trainer):
    trainer = make_trainer([batch(4)], optimization_stepper=DefaultOptimizationStepper())
    with pytest.raises(HookError, match="the trainer has no optimizer"):
        trainer.train()


@pytest.mark.parametrize(("components", "message"), [("loss", "expected a sequence"), ([], "loss_components is empty")])
def test_components_that_name_nothing_are_refused(components, message):
    with pytest.raises(HookError, match=message):
        DefaultOptimizationStepper(components)


def test_a_stepper_of_ones_own_takes_the_steps_and_keeps_its_state(batch, make_trainer, loss, tmp_path):
    def build(loss):
        stepper = Delayed(torch.optim.SGD(loss.parameters(), lr=0.1, momentum=0.9))
        trainer = make_trainer(
            [batch(4)] * 3, loss_module=loss, optimization_stepper=stepper, save_trainer_file=tmp_path / "run"
        )
        return trainer, stepper

    before = loss.actor.weight.detach().clone()
    called = []
    trainer, stepper = build(loss)
    trainer.register_op("post_optim", lambda: called.append(torch.equal(loss.actor.weight, before)))
    trainer.train()
    assert called == [True, False, False], "after each step, and the second changed the weights"
    trainer.save_trainer(True)
    resumed, other = build(type(loss)())
    resumed.load_from_file(tmp_path / "run")
    assert other.calls == 3
    assert other.optimizer.state_dict()["state"].keys() == stepper.optimizer.state_dict()["state"].keys() != set()


def test_a_stepper_must_say_what_a_step_is():
    class Nothing(OptimizationStepper):
        pass

    with pytest.raises(TypeError, match="step"):
        Nothing()
