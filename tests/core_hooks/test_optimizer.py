"""OptimizerHook takes the steps of an optimizer."""

import pytest
import torch

from rlcore import DefaultOptimizationStepper, HookError, NumericalError, OptimizerHook


class Two(torch.nn.Module):
    """Two parameters with a loss each, and a number that is no loss."""

    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Parameter(torch.ones(())), torch.nn.Parameter(torch.ones(()))

    def forward(self, batch):
        return {"loss_a": self.a**2, "loss_b": 2 * self.b**2, "entropy": self.a * 3}


@pytest.fixture
def loss():
    return Two()


def sgd(*parameters):
    return torch.optim.SGD(parameters, lr=0.1)


def test_every_loss_is_minimised_unless_some_are_named(batch, make_trainer, loss):
    trainer = make_trainer([batch(4)], loss_module=loss)
    OptimizerHook(sgd(loss.a, loss.b)).register(trainer)
    trainer.train()
    assert (round(loss.a.item(), 4), round(loss.b.item(), 4)) == (0.8, 0.6)


def test_several_take_their_steps_in_order_and_say_their_norms_by_number(batch, make_trainer, loss):
    trainer = make_trainer([batch(4)], loss_module=loss)
    OptimizerHook(sgd(loss.a), ["loss_a"]).register(trainer, "optimizer_a")
    OptimizerHook(sgd(loss.b), ["loss_b"]).register(trainer, "optimizer_b")
    trainer.train()
    assert (round(loss.a.item(), 4), round(loss.b.item(), 4)) == (0.8, 0.6)
    assert [trainer.metrics.newest(f"grad_norm_{index}") for index in (0, 1)] == [2.0, 4.0]


@pytest.mark.parametrize(
    ("clipping", "expected"),
    [({"clip_norm": 1.0}, 1 - 0.1), ({"clip_norm": 0.5, "clip_grad_norm": False}, 1 - 0.05), ({}, 1 - 0.2)],
    ids=["norm", "value", "none"],
)
def test_gradients_are_clipped_as_the_trainer_says(batch, make_trainer, loss, clipping, expected):
    trainer = make_trainer([batch(4)], loss_module=loss, **clipping)
    OptimizerHook(sgd(loss.a), {"loss_a"}).register(trainer)
    trainer.train()
    assert loss.a.item() == pytest.approx(expected, abs=1e-5)
    assert trainer.metrics.newest("grad_norm_0") == 2.0, "before clipping"


def test_the_state_of_the_optimizer_is_saved(batch, make_trainer, loss):
    def build():
        trainer = make_trainer([batch(4)] * 2, loss_module=loss)
        hook = OptimizerHook(torch.optim.Adam(loss.parameters()))
        hook.register(trainer)
        return trainer, hook

    trainer, hook = build()
    trainer.train()
    resumed, other = build()
    resumed.load_state_dict(trainer.state_dict())
    expected, found = (h.optimizer.state_dict()["state"] for h in (hook, other))
    assert expected[0]["step"].item() == found[0]["step"].item() == 2
    assert torch.equal(expected[1]["exp_avg"], found[1]["exp_avg"])


def test_a_step_that_is_not_finite_changes_nothing_and_stops_the_run(batch, make_trainer, loss):
    def infinite(batch):
        return {"loss_a": loss.a * float("inf")}

    trainer = make_trainer([batch(4)], loss_module=infinite)
    OptimizerHook(sgd(loss.a)).register(trainer)
    with pytest.raises(NumericalError, match="1 steps of SGD had a loss or gradient that is not finite"):
        trainer.train()
    assert loss.a.item() == 1.0


@pytest.mark.parametrize("stepper", [True, False], ids=["stepper", "hook"])
def test_a_step_that_is_not_finite_is_found_though_the_script_changes_how_steps_are_taken(
    batch, make_trainer, loss, stepper
):
    def of_first_step(batch):
        return {"loss_a": loss.a * (float("nan") if trainer.progress.updates == 0 else 1.0)}

    trainer = make_trainer(
        [batch(4)],
        loss_module=of_first_step,
        optimizer=sgd(loss.a),
        optim_steps_per_batch=2,
        optimization_stepper=DefaultOptimizationStepper() if stepper else None,
    )
    trainer.register_op("post_optim", lambda: setattr(trainer, "clip_norm", 2.0))
    with pytest.raises(NumericalError, match="1 steps of SGD"):
        trainer.train()


@pytest.mark.parametrize(
    ("components", "message"), [("loss_a", "expected a sequence"), ((), "loss_components is empty")]
)
def test_components_that_name_nothing_are_refused(loss, components, message):
    with pytest.raises(HookError, match=message):
        OptimizerHook(sgd(loss.a), components)


def test_a_loss_that_is_not_returned_is_named(batch, make_trainer, loss):
    trainer = make_trainer([batch(4)], loss_module=loss)
    OptimizerHook(sgd(loss.a), ["loss_aa"]).register(trainer)
    with pytest.raises(Exception, match="returns no 'loss_aa'; did you mean 'loss_a'"):
        trainer.train()
