"""LRSchedulerHook moves learning rates."""

from types import SimpleNamespace

import pytest
import torch
from rlcore_plugin_gradient.schedules import Linear, ScheduleConfig

from rlcore import Context, HookError, LRSchedulerHook, OptimizerHook, Progress


def halving(optimizer):
    return torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)


@pytest.fixture
def of(make_trainer):
    """Return a trainer whose optimizer has the rate 1, and the optimizer."""

    def make(batches, **arguments):
        loss = make_trainer().loss_module
        optimizer = torch.optim.SGD(loss.parameters(), lr=1.0)
        return make_trainer(batches, loss_module=loss, optimizer=optimizer, **arguments), optimizer

    return make


def linear(final=0.0, target="lr"):
    context = Context(SimpleNamespace(seed=1), torch.device("cpu"), Progress(1))
    return Linear(ScheduleConfig(target=target, final=final), context)


@pytest.mark.parametrize(("interval", "rate"), [("batch", 0.25), ("optim", 1 / 64)])
def test_a_scheduler_of_torch_steps_per_batch_or_per_step(batch, of, interval, rate):
    trainer, optimizer = of([batch(4)] * 2, optim_steps_per_batch=3)
    LRSchedulerHook(halving(optimizer), interval).register(trainer)
    trainer.train()
    assert optimizer.param_groups[0]["lr"] == rate


def test_a_schedule_of_rlcore_acts_from_the_first_step_on(batch, of):
    scheduler = SimpleNamespace(target="lr", value=lambda initial, progress: initial * progress.frames / 100)
    trainer, optimizer = of([batch(4)] * 2)
    LRSchedulerHook(scheduler).register(trainer)
    rates = []
    trainer.register_op("pre_optim_steps", lambda: rates.append(optimizer.param_groups[0]["lr"]))
    trainer.train()
    assert rates == [0.0, 0.04]


def test_it_waits_while_frames_are_only_collected(batch, of):
    class Warm(list):
        init_random_frames = 8

    trainer, optimizer = of([])
    from rlcore import Trainer

    trainer = Trainer(
        collector=Warm([batch(4)] * 3),
        total_frames=12,
        loss_module=trainer.loss_module,
        optimizer=optimizer,
        optim_steps_per_batch=1,
        progress_bar=False,
    )
    LRSchedulerHook(halving(optimizer)).register(trainer)
    rates = []
    trainer.register_op("post_steps_log", lambda batch: rates.append(optimizer.param_groups[0]["lr"]))
    trainer.train()
    assert rates == [1.0, 0.5, 0.25]


def test_a_schedule_of_rlcore_follows_the_frames(batch, of):
    trainer, optimizer = of([batch(4)] * 3, total_frames=16)
    LRSchedulerHook(linear(final=0.2)).register(trainer)
    trainer.train()
    assert trainer.collected_frames == 12
    assert optimizer.param_groups[0]["lr"] == pytest.approx(1 - 0.8 * 12 / 16)


def test_a_schedule_of_rlcore_can_name_one_of_several_optimizers(batch, make_trainer):
    weights = [torch.nn.Parameter(torch.ones(())) for _ in range(2)]
    optimizers = [torch.optim.SGD([weight], lr=1.0) for weight in weights]

    def loss(batch):
        return {"loss_first": weights[0] ** 2, "loss_second": weights[1] ** 2}

    trainer = make_trainer([batch(4)], loss_module=loss, total_frames=8)
    LRSchedulerHook(linear(target="second.lr")).register(trainer)
    for name, optimizer in zip(("first", "second"), optimizers, strict=True):
        OptimizerHook(optimizer, [f"loss_{name}"]).register(trainer, name)
    trainer.train()
    assert [optimizer.param_groups[0]["lr"] for optimizer in optimizers] == [1.0, 0.5]


@pytest.mark.parametrize("interval", ["batch", "optim"])
def test_a_resume_goes_on_at_the_same_rate(batch, of, interval, tmp_path):
    def build(batches, folder):
        trainer, optimizer = of(batches, optim_steps_per_batch=2, save_trainer_file=folder)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
        LRSchedulerHook(scheduler, interval).register(trainer)
        return trainer, optimizer

    whole, expected = build([batch(4)] * 4, None)
    whole.train()
    first, _ = build([batch(4)] * 2, tmp_path / "run")
    first.train()
    first.save_trainer(True)
    second, found = build([batch(4)] * 2, None)
    second.load_from_file(tmp_path / "run").train()
    assert found.param_groups[0]["lr"] == expected.param_groups[0]["lr"] != 1.0


def test_called_by_hand_it_steps_every_time(of):
    _, optimizer = of([])
    hook = LRSchedulerHook(halving(optimizer))
    hook()
    hook()
    assert optimizer.param_groups[0]["lr"] == 0.25


def test_what_cannot_be_used_is_refused(of, make_trainer):
    _, optimizer = of([])
    with pytest.raises(HookError, match="interval = 'epoch'"):
        LRSchedulerHook(halving(optimizer), "epoch")
    with pytest.raises(HookError, match=r"a float has neither step\(\)"):
        LRSchedulerHook(0.5)
    with pytest.raises(HookError, match="ReduceLROnPlateau needs a metric"):
        LRSchedulerHook(torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer))
    with pytest.raises(HookError, match="a schedule follows a trainer's progress"):
        LRSchedulerHook(linear())()


def test_a_schedule_without_an_optimizer_is_said(batch, make_trainer):
    trainer = make_trainer([batch(4)])
    LRSchedulerHook(linear()).register(trainer)
    with pytest.raises(HookError, match="the trainer has no optimizer"):
        trainer.train()
