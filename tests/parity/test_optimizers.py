"""Gradients and steps that a script adds to, patches or watches, and what is called outside of training."""

from __future__ import annotations

import types

import pytest
import torch

import rlcore
from tests.parity.conftest import Loss, Rows, make_batch, trainer_of

trainers = pytest.importorskip("torchrl.trainers.trainers")

HOOKS = {"torchrl": trainers, "rlcore": rlcore}
LIBRARIES = ("torchrl", "rlcore")
BATCHES = [make_batch(2, 4, seed=number) for number in range(3)]


class HalfSteps(torch.optim.Adam):
    """Forgets half of every step, after it was taken."""

    def step(self, closure=None):
        before = [parameter.detach().clone() for parameter in self.param_groups[0]["params"]]
        super().step(closure)
        with torch.no_grad():
            for parameter, old in zip(self.param_groups[0]["params"], before, strict=True):
                parameter.lerp_(old, 0.5)


def built(library, kind=torch.optim.Adam, **arguments):
    loss = Loss()
    optimizer = kind(loss.parameters(), lr=0.01)
    return trainer_of(library, BATCHES, loss_module=loss, optimizer=optimizer, optim_steps_per_batch=2, **arguments)


def weights(trainer):
    return torch.cat([parameter.detach().reshape(-1) for parameter in trainer.loss_module.parameters()])


def trained(library, prepare, **arguments):
    trainer = built(library, **arguments)
    prepare(library, trainer)
    trainer.train()
    return weights(trainer)


def own_backward(place):
    def prepare(library, trainer):
        weight = trainer.loss_module.layer.weight

        def pull(*arguments):
            weight.square().sum().backward()

        trainer.register_op(place, pull)

    return prepare


def patched(library, trainer):
    inner, calls = type(trainer.optimizer).step, []

    def step(self, *arguments):
        calls.append(1)
        if len(calls) % 2:
            inner(self, *arguments)

    trainer.optimizer.step = types.MethodType(step, trainer.optimizer)


def watched(library, trainer):
    def halve(optimizer, arguments, options):
        for parameter in optimizer.param_groups[0]["params"]:
            parameter.grad.mul_(0.5).add_(0.1)

    trainer.optimizer.register_step_pre_hook(halve)


def patched_in_the_middle(library, trainer):
    count = []

    def patch():
        count.append(1)
        if len(count) == 2:
            patched(library, trainer)

    trainer.register_op("post_steps", patch)


def two_optimizers(library, trainer):
    loss = trainer.loss_module
    for number, parameter in enumerate((loss.layer.weight, loss.layer.bias)):
        optimizer = torch.optim.SGD([parameter], lr=0.1)
        name = ("loss_value", "loss_size")[number]
        HOOKS[library].OptimizerHook(optimizer, [name]).register(trainer, f"optimizer_{number}")


class SeparateLosses(torch.nn.Module):
    """Two losses with graphs of their own, both through both parameters."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.layer = torch.nn.Linear(3, 1)

    def forward(self, batch):
        from tensordict import TensorDict

        value, size = (self.layer(batch["observation"]) for _ in range(2))
        return TensorDict({"loss_value": (value - 1).pow(2).mean(), "loss_size": size.abs().mean()})


WAYS = {
    "backward before the losses": own_backward("process_optim_batch"),
    "backward after the losses": own_backward("post_loss"),
    "backward after the step": own_backward("post_optim"),
    "backward once per batch": own_backward("pre_optim_steps"),
    "patched": patched,
    "watched": watched,
    "patched in the middle": patched_in_the_middle,
}


@pytest.mark.parametrize("clipping", [{}, {"clip_norm": 0.1}], ids=["free", "clipped"])
@pytest.mark.parametrize("way", WAYS)
def test_it_learns_as_theirs_does(way, clipping):
    theirs, ours = (trained(library, WAYS[way], **clipping) for library in LIBRARIES)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-7)
    plain = trained("rlcore", lambda library, trainer: None, **clipping)
    assert not torch.allclose(ours, plain, rtol=1e-4, atol=1e-5), "it changed nothing"


def test_a_subclass_of_an_optimizer_steps():
    theirs, ours = (trained(library, lambda *_: None, kind=HalfSteps) for library in LIBRARIES)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-7)


def test_losses_that_flow_into_parameters_of_another_optimizer():
    found = []
    for library in LIBRARIES:
        trainer = trainer_of(library, BATCHES, loss_module=SeparateLosses(), optim_steps_per_batch=2)
        two_optimizers(library, trainer)
        trainer.train()
        found.append(weights(trainer))
    torch.testing.assert_close(found[1], found[0], rtol=1e-5, atol=1e-7)


def test_optimisation_without_training_calls_what_is_registered():
    found = []
    for library in LIBRARIES:
        trainer, called = built(library), []
        for name in ("pre_optim_steps", "process_optim_batch", "post_optim", "post_optim_log", "post_epoch"):
            trainer.register_op(name, lambda *arguments, name=name, called=called: called.append(name))
        if library == "torchrl":  # there, nothing returned ends the epoch
            trainer._process_optim_batch_ops.clear()
            trainer.register_op(
                "process_optim_batch", lambda b, called=called: called.append("process_optim_batch") or b
            )
        trainer.optim_steps(BATCHES[0])
        found.append((called, weights(trainer)))
    assert found[1][0] == found[0][0]
    torch.testing.assert_close(found[1][1], found[0][1], rtol=1e-5, atol=1e-7)


def test_timings_are_logged_of_a_hook_that_was_registered_as_an_operation(library):
    torchrl_timeit = pytest.importorskip("torchrl._utils").timeit
    torchrl_timeit.erase()
    trainer = built(library, logger=(rows := Rows()))
    trainer.register_op("post_steps", lambda: None)
    trainer.register_op("post_steps_log", HOOKS[library].LogTiming(prefix="time"))
    trainer.train()
    names = {name for _, name, _ in rows.rows if name.startswith("time/hook/")}
    assert any("lambda" in name for name in names)
    assert names & {"time/hook/optimizer", "time/hook/OptimizerHook"}


class TwoPlaces(rlcore.TrainerHookBase):
    destinations = {"post_steps": "slow", "post_optim": "fast"}
    default_name = "two_places"
    now = 0.0  # of a clock that only it moves

    def slow(self):
        self.now += 5.0

    def fast(self):
        self.now += 1.0


def test_the_times_of_one_module_at_two_destinations_are_two(monkeypatch):
    trainer, module = built("rlcore", logger=(rows := Rows())), TwoPlaces()
    monkeypatch.setattr("rlcore.hooks.points.perf_counter", lambda: module.now)
    module.register(trainer)
    rlcore.LogTiming(percall=False).register(trainer)
    trainer.train()
    last = {name: value for _, name, value in rows.rows if name.startswith("time/hook/two_places")}
    assert last == {"time/hook/two_places/post_steps": 15, "time/hook/two_places/post_optim": 6}
