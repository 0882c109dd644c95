"""The gradient step: it is torch's own, whichever way it is taken."""

from __future__ import annotations

import copy
import types
import unittest.mock
import warnings

import pytest
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from rlcore.errors import ConfigError
from rlcore.learners.adam import AdamState
from rlcore.learners.gradient_step import GradientStep, total_loss


def two_heads():
    torch.manual_seed(0)
    return nn.ModuleDict({"a": nn.Linear(3, 1), "b": nn.Linear(3, 1)})


def losses(model, *heads):
    return {f"loss_{head}": (model[head](torch.ones(4, 3)) - 1).square().mean() for head in heads}


def same(one, other):
    for ours, theirs in zip(one.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-7)


def steps(heads_of_each_step, make_optimizer, max_norm=None, max_value=None):
    """Take the same steps with `GradientStep` and by hand; return both models and optimizers."""
    ours, theirs = two_heads(), two_heads()
    optimizer, reference = make_optimizer(ours.parameters()), make_optimizer(theirs.parameters())
    step = GradientStep(optimizer, max_norm, torch.device("cpu"), max_value=max_value)
    for heads in heads_of_each_step:
        step.backward(losses(ours, *heads), alone=True)
        step.apply()
        reference.zero_grad()
        sum(losses(theirs, *heads).values()).backward()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(theirs.parameters(), max_norm)
        if max_value is not None:
            nn.utils.clip_grad_value_(theirs.parameters(), max_value)
        reference.step()
    return ours, theirs, optimizer, reference


OPTIMIZERS = {
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=0.1),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.1),
    "amsgrad": lambda parameters: torch.optim.Adam(parameters, lr=0.1, amsgrad=True),
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "groups": lambda parameters: torch.optim.Adam([{"params": [p], "lr": 0.1} for p in parameters]),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("clipping", [{}, {"max_norm": 0.1}, {"max_value": 0.01}], ids=str)
def test_steps_are_those_of_torch(name, clipping):
    ours, theirs, _, _ = steps(["ab"] * 5, OPTIMIZERS[name], **clipping)
    same(ours, theirs)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_in_which_only_some_parameters_have_gradients(name):
    ours, theirs, optimizer, reference = steps(["ab", "a", "ab", "b", "a", "ab"], OPTIMIZERS[name])
    same(ours, theirs)
    counts = [
        [float(state["step"]) for state in found.state.values() if "step" in state] for found in (optimizer, reference)
    ]
    assert counts[0] == counts[1]


@pytest.mark.parametrize("max_norm", [None, 0.1])
def test_a_group_that_is_added_in_the_middle_of_a_run_is_trained_as_torch_does(max_norm):
    ours, theirs = two_heads(), two_heads()
    optimizer, reference = (torch.optim.Adam(model["a"].parameters(), lr=0.1) for model in (ours, theirs))
    step = GradientStep(optimizer, max_norm, torch.device("cpu"))
    for number in range(6):
        if number == 3:
            optimizer.add_param_group({"params": list(ours["b"].parameters())})
            reference.add_param_group({"params": list(theirs["b"].parameters())})
        step.backward(losses(ours, "a", "b"), alone=True)
        norm = step.apply()
        ours.zero_grad()  # what no optimizer has
        sum(losses(theirs, "a", "b").values()).backward()
        parameters = [parameter for group in reference.param_groups for parameter in group["params"]]
        expected = nn.utils.clip_grad_norm_(parameters, max_norm or 1e9)
        reference.step()
        theirs.zero_grad()
        torch.testing.assert_close(norm, expected)
    same(ours, theirs)


def test_a_loaded_state_with_uneven_counts_is_kept():
    _, theirs, _, reference = steps(["ab", "a"], OPTIMIZERS["adam"])
    state = copy.deepcopy(reference.state_dict())
    model = copy.deepcopy(theirs)
    resumed = OPTIMIZERS["adam"](model.parameters())
    resumed.load_state_dict(state)
    step = GradientStep(resumed, None, torch.device("cpu"))
    step.backward(losses(model, "a", "b"), alone=True)
    step.apply()
    reference.zero_grad()
    sum(losses(theirs, "a", "b").values()).backward()
    reference.step()
    same(model, theirs)


def test_hooks_on_the_optimizer_are_called():
    calls = []
    model = two_heads()
    optimizer = torch.optim.Adam(model.parameters())
    optimizer.register_step_post_hook(lambda *arguments: calls.append(1))
    step = GradientStep(optimizer, None, torch.device("cpu"))
    step.backward(losses(model, "a", "b"), alone=True)
    step.apply()
    assert calls == [1]


class CountingAdam(torch.optim.Adam):
    """Counts its steps, and how often it is asked to clear the gradients."""

    calls = 0
    clearings = 0

    def step(self, closure=None):
        self.calls += 1
        return super().step(closure)

    def zero_grad(self, set_to_none=True):
        self.clearings += 1
        super().zero_grad(set_to_none)


def patch_instance(optimizer, calls):
    before = optimizer.step

    def step(*arguments, **options):
        calls.append(1)
        return before(*arguments, **options)

    optimizer.step = step


def patch_under_a_scheduler(optimizer, calls):
    before = type(optimizer).step

    def step(self, *arguments):
        calls.append(1)
        return before(self, *arguments)

    optimizer.step = types.MethodType(step, optimizer)
    torch.optim.lr_scheduler.ConstantLR(optimizer, 1.0)


WAYS_TO_WATCH = {
    "instance": patch_instance,
    "below a scheduler's wrapper": patch_under_a_scheduler,
    "pre hook": lambda optimizer, calls: optimizer.register_step_pre_hook(lambda *_: calls.append(1)),
    "post hook": lambda optimizer, calls: optimizer.register_step_post_hook(lambda *_: calls.append(1)),
    "mock": lambda optimizer, calls: setattr(
        optimizer, "step", unittest.mock.Mock(side_effect=lambda *_: calls.append(1), wraps=optimizer.step)
    ),
}


@pytest.mark.parametrize("way", WAYS_TO_WATCH)
@pytest.mark.parametrize("before", [0, 2], ids=["from the first step", "after two fused steps"])
def test_whoever_watches_the_steps_is_called_and_they_stay_those_of_torch(way, before):
    calls = []
    ours, theirs = two_heads(), two_heads()
    optimizer, reference = (OPTIMIZERS["adam"](model.parameters()) for model in (ours, theirs))
    step = GradientStep(optimizer, 0.5, torch.device("cpu"))
    for number in range(4):
        if number == before:
            WAYS_TO_WATCH[way](optimizer, calls)
        step.backward(losses(ours, "a", "b"), alone=True)
        step.apply()
        reference.zero_grad()
        sum(losses(theirs, "a", "b").values()).backward()
        nn.utils.clip_grad_norm_(theirs.parameters(), 0.5)
        if number < before or way != "mock":  # that one takes no step
            reference.step()
    same(ours, theirs)
    assert len(calls) == 4 - before
    counts = {float(state["step"]) for state in optimizer.state.values()}
    assert counts == {float(state["step"]) for state in reference.state.values()}


def test_a_global_hook_and_a_patched_class_are_called(monkeypatch):
    calls = []
    model = two_heads()
    step = GradientStep(torch.optim.Adam(model.parameters()), None, torch.device("cpu"))

    def take():
        step.backward(losses(model, "a", "b"), alone=True)
        step.apply()

    take()
    handle = register_optimizer_step_pre_hook(lambda *_: calls.append("global"))
    take()
    handle.remove()
    take()
    monkeypatch.setattr(torch.optim.Adam, "step", lambda self: calls.append("class"))
    take()
    assert calls == ["global", "class"]


def test_a_subclass_steps_and_clears_by_itself():
    model = two_heads()
    optimizer = CountingAdam(model.parameters())
    step = GradientStep(optimizer, None, torch.device("cpu"))
    step.backward(losses(model, "a", "b"), alone=True)
    step.apply()
    assert (optimizer.calls, optimizer.clearings) == (1, 1)


def test_torchs_own_wrappers_leave_the_fused_step():
    optimizer = torch.optim.AdamW(two_heads().parameters())
    assert AdamState.fits(optimizer)
    torch.optim.lr_scheduler.StepLR(optimizer, 1)
    assert AdamState.fits(optimizer)


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_gradients_that_are_there_before_count_once(name, alone):
    ours, theirs = two_heads(), two_heads()
    optimizer, reference = OPTIMIZERS[name](ours.parameters()), OPTIMIZERS[name](theirs.parameters())
    step = GradientStep(optimizer, 1.0, torch.device("cpu"))
    for number in range(4):
        reference.zero_grad()
        for model in (ours, theirs):
            if number % 2:
                (5 * losses(model, "a")["loss_a"]).backward()
        step.backward(losses(ours, "a", "b"), alone)
        step.apply()
        assert not step.waiting_gradients()
        sum(losses(theirs, "a", "b").values()).backward()
        nn.utils.clip_grad_norm_(theirs.parameters(), 1.0)
        reference.step()
    same(ours, theirs)


def test_a_scheduler_of_torch_does_not_warn():
    model = two_heads()
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    step = GradientStep(optimizer, None, torch.device("cpu"))
    step.backward(losses(model, "a", "b"), alone=True)
    step.apply()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scheduler.step()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_that_is_not_finite_changes_nothing_and_is_counted(name):
    model = two_heads()
    optimizer = OPTIMIZERS[name](model.parameters())
    step = GradientStep(optimizer, 1.0, torch.device("cpu"))
    before = copy.deepcopy(model.state_dict())
    step.backward({"loss": losses(model, "a")["loss_a"] * float("nan")}, alone=True)
    norm = step.apply()
    assert not torch.isfinite(norm)
    assert float(step.skipped) == 1
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())


@pytest.mark.parametrize("alone", [True, False])
def test_losses_that_reach_no_parameter_of_the_optimizer_are_refused(alone):
    model = two_heads()
    step = GradientStep(torch.optim.Adam(model["b"].parameters()), None, torch.device("cpu"))
    step.backward(losses(model, "a"), alone)
    with pytest.raises(ConfigError, match="depend on none of the 2 parameters of Adam"):
        step.apply()


def test_the_losses_to_minimise():
    values = {"loss_a": torch.tensor(1.0), "loss_b": torch.tensor(2.0), "kl": torch.tensor(4.0)}
    assert total_loss(values) == 3
    assert total_loss(values, ("kl",)) == 4
    with pytest.raises(ConfigError, match="no 'loss_c'"):
        total_loss(values, ("loss_c",))
    with pytest.raises(ConfigError, match="nothing to minimise: its keys are kl"):
        total_loss({"kl": values["kl"]})
