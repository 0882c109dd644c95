"""Whether the state of an optimizer fits its parameters, and which components start over with another one."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from rlcore import LRSchedulerHook
from rlcore.core_hooks.optimizer import OptimizerHook
from rlcore.errors import StorageError
from rlcore.learners.adam import AdamState
from rlcore.state.fitting import check_state, misfits, with_hyperparameters
from rlcore.state.restoring import dependents, restore

KINDS = {
    **{name: getattr(torch.optim, name) for name in ("Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop")},
    **{name: getattr(torch.optim, name) for name in ("Adagrad", "Adadelta", "Adafactor", "ASGD", "Rprop", "LBFGS")},
    "SGD": lambda parameters: torch.optim.SGD(parameters, momentum=0.9),
    "fused SGD": lambda parameters: torch.optim.SGD(parameters, momentum=0.9, fused=True),
    "fused Adagrad": lambda parameters: torch.optim.Adagrad(parameters, fused=True),
    "amsgrad": lambda parameters: torch.optim.Adam(parameters, amsgrad=True),
}


def trained(kind, width=3):
    """Return an optimizer that has taken two steps."""
    model = nn.Sequential(nn.Linear(2, width), nn.Linear(width, 2))
    optimizer = KINDS[kind](list(model.parameters()))

    def closure():
        optimizer.zero_grad()
        loss = model(torch.ones(4, 2)).square().sum()
        loss.backward()
        return loss

    for _ in range(2):
        optimizer.step(closure)
    return optimizer


@pytest.mark.parametrize("kind", KINDS)
def test_the_state_of_an_equal_optimizer_fits(kind):
    state = copy.deepcopy(trained(kind).state_dict())
    other = trained(kind)
    check_state(other, state)
    other.load_state_dict(state)


@pytest.mark.parametrize("width", [2, 7], ids=["smaller", "larger"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_state_of_an_optimizer_of_other_shapes_does_not(kind, width):
    assert misfits(trained(kind), trained(kind, width).state_dict())


class Preconditioned(torch.optim.Optimizer):
    """Not of torch: its state has other forms than its parameters."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 0.1})

    def step(self, closure=None):
        for parameter in self.param_groups[0]["params"]:
            self.state[parameter] = {"left": torch.eye(parameter.shape[0]), "quantiles": torch.zeros(256)}


def test_the_state_of_an_optimizer_that_is_not_of_torch_has_its_own_forms():
    layer = nn.Linear(7, 4)
    one, other = (Preconditioned(layer.parameters()) for _ in range(2))
    one.step()
    check_state(other, one.state_dict())
    with pytest.raises(StorageError, match="2 parameters here, 4 parameters in the checkpoint"):
        check_state(other, Preconditioned([*layer.parameters(), *nn.Linear(2, 2).parameters()]).state_dict())


def test_a_class_of_an_optimizer_of_torch_has_its_forms():
    class Named(torch.optim.SGD):
        """Steps as SGD does."""

    one, other = (Named(nn.Linear(width, 2).parameters(), momentum=0.9) for width in (3, 5))
    for parameter in other.param_groups[0]["params"]:
        other.state[parameter] = {"momentum_buffer": torch.ones_like(parameter)}
    assert misfits(one, other.state_dict())


def test_another_number_of_parameters_is_said():
    one, two = nn.Linear(2, 2), nn.Linear(2, 2)
    state = torch.optim.Adam([*one.parameters(), *two.parameters()]).state_dict()
    with pytest.raises(StorageError, match="it has 2 parameters here, 4 parameters in the checkpoint"):
        check_state(torch.optim.Adam(one.parameters()), state)


def test_another_kind_of_optimizer_is_said():
    layer = nn.Linear(2, 2)
    with pytest.raises(StorageError, match=r"another kind of optimizer: SGD has .*momentum.*, the checkpoint .*betas"):
        check_state(torch.optim.SGD(layer.parameters()), torch.optim.Adam(layer.parameters()).state_dict())


def test_another_dtype_is_said():
    state = trained("Adam").state_dict()
    other = torch.optim.Adam(nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2)).double().parameters())
    with pytest.raises(StorageError, match=r"exp_avg of parameter 0 is \[3, 2\] float64 here, \[3, 2\] float32 in the"):
        check_state(other, state)


def test_parameters_of_the_same_shape_are_told_apart_by_their_names():
    model = nn.ModuleDict({"actor": nn.Linear(2, 2), "critic": nn.Linear(2, 2)})
    actor, critic = (
        torch.optim.Adam([(name, value) for name, value in model.named_parameters() if name.startswith(part)])
        for part in ("actor", "critic")
    )
    check_state(actor, actor.state_dict())
    with pytest.raises(StorageError, match=r"parameter 'actor.weight' here is 'critic.weight' in the checkpoint"):
        check_state(actor, critic.state_dict())
    nameless = torch.optim.Adam(model["critic"].parameters()).state_dict()
    check_state(actor, nameless)  # of an older rlcore


def test_moments_from_elsewhere_never_reach_the_kernel():
    """A script may load a state past the trainer; torch looks at the count of parameters alone."""
    optimizer = trained("Adam", width=64)
    optimizer.load_state_dict(trained("Adam").state_dict())
    with pytest.raises(StorageError, match=r"moments of \[3, 2\] for a parameter of \[64, 2\]"):
        AdamState(optimizer)


def test_numbers_of_the_optimizer_and_moments_of_the_state():
    saved = trained("Adam").state_dict()
    optimizer = torch.optim.Adam(nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2)).parameters(), lr=0.5, eps=0.25)
    optimizer.load_state_dict(with_hyperparameters(optimizer, saved))
    group = optimizer.param_groups[0]
    assert (group["lr"], group["eps"], group["betas"]) == (0.5, 0.25, (0.9, 0.999))
    assert torch.equal(optimizer.state_dict()["state"][0]["exp_avg"], saved["state"][0]["exp_avg"])


# what starts over with another part


def parts():
    loss = nn.ModuleDict({"actor": nn.Linear(2, 2), "critic": nn.Linear(2, 1)})
    actor, critic = (torch.optim.Adam(loss[name].parameters()) for name in ("actor", "critic"))
    scheduler = torch.optim.lr_scheduler.StepLR(actor, 1)
    return {
        "policy": loss["actor"],
        "loss_module": loss,
        "other": nn.Linear(2, 2),
        "optimizer": OptimizerHook(actor),
        "critic": critic,
        "schedule": LRSchedulerHook(scheduler),
        "bare_schedule": scheduler,
    }


@pytest.mark.parametrize(
    ("fresh", "following"),
    [
        (["other"], set()),
        (["schedule"], set()),
        (["optimizer"], {"schedule", "bare_schedule"}),
        (["critic"], set()),
        (["loss_module"], {"policy", "optimizer", "critic", "schedule", "bare_schedule"}),
        (["policy"], {"loss_module", "optimizer", "critic", "schedule", "bare_schedule"}),
    ],
)
def test_what_depends_on_a_part_starts_over_with_it(fresh, following):
    assert set(dependents(parts(), fresh)) == following


def test_an_optimizer_around_another_one_is_followed_as_itself():
    class Lookahead(torch.optim.Optimizer):
        def __init__(self, optimizer):
            super().__init__(optimizer.param_groups, {"lr": 0.1})
            self.optimizer = optimizer

    outer = Lookahead(torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1))
    scheduler = torch.optim.lr_scheduler.StepLR(outer, 1)
    assert dependents({"optimizer": outer, "schedule": scheduler}, ["optimizer"]) == {"schedule": "optimizer"}


def test_the_report_says_why_a_part_starts_over():
    components = parts()
    states = {name: part.state_dict() for name, part in components.items()}
    report = restore(components, states, {}, fresh=["optimizer"])
    lines = [str(line) for line in report]
    assert "optimizer: starts over" in lines
    assert "schedule: starts over, since optimizer does" in lines
    assert "policy: restored" in lines
