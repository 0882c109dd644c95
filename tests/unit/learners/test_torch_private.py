"""Training goes on, with the same results, in a version of torch without the private names that are used for speed."""

from __future__ import annotations

import copy
import logging
import re
from pathlib import Path

import pytest
import torch
from rlcore_plugin_gradient.learner import GradientLearner
from rlcore_plugin_gradient.targets import TargetUpdater
from torch import nn

import rlcore
from rlcore import Context, Progress
from rlcore.hooks.points import LoopHooks
from rlcore.learners import adam as adam_module
from rlcore.learners import torch_private
from rlcore.learners.adam import AdamState
from rlcore.types import RunInfo

LOOKED_UP = (
    "_fused_adam_",
    "_fused_adamw_",
    "_foreach_norm",
    "_foreach_copy_",
    "_foreach_lerp_",
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_global_optimizer_pre_hooks",
    "_global_optimizer_post_hooks",
)
# a mark for schedulers of torch, which only warn without it
WRITTEN = ("_opt_called",)
FOLDERS = [Path(rlcore.__file__).parent / room for room in ("learners", "buffers", "core_hooks")]


def private_names(*folders):
    """Return the private names of torch in the source: where they are looked up, and any others."""
    looked_up, others = set(), set()
    for folder in folders:
        for path in folder.rglob("*.py"):
            text = path.read_text()
            looked_up |= set(re.findall(r'look_up\([\w, ]*?"(_\w+)"', text))
            looked_up |= set(re.findall(r'(?:look_up\(.*?|else )"(_\w+)"', text))
            others |= set(re.findall(r"\b(?:torch\w*|optimizer)(?:\.[a-z]\w*)*\.(_(?!_)\w+)", text))
    return looked_up, others


def test_every_private_name_is_in_the_lists():
    looked_up, others = private_names(*FOLDERS)
    assert looked_up == set(LOOKED_UP)
    assert others == set(WRITTEN), "look it up in torch_private.py, where what takes its place is too"


def refuses(*arguments, **options):
    raise TypeError("other arguments")


def means_something_else(*arguments, **options):
    return [torch.zeros(())]


WAYS_TO_CHANGE = {"missing": None, "of another signature": refuses, "of another meaning": means_something_else}


@pytest.fixture(params=WAYS_TO_CHANGE)
def change(monkeypatch, request):
    """Return what makes private names of torch look as in another version."""

    def of(*names):
        def look_up(owner, name):
            return WAYS_TO_CHANGE[request.param] if name in names else getattr(owner, name, None)

        monkeypatch.setattr(torch_private, "look_up", look_up)
        monkeypatch.setattr(adam_module, "look_up", look_up)

    return of


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))

    def parts(self):
        return ("net",)


class Loss(nn.Module):
    def __init__(self, model, tau):
        super().__init__()
        self.net, self.target = model.net, copy.deepcopy(model.net)
        self.target_updater = TargetUpdater([(self.net, self.target)], interval=2, tau=tau)

    def forward(self, minibatch):
        return {"loss_net": (self.net(minibatch["x"]) - 1 - self.target(minibatch["x"])).square().mean()}


def make(kind, tau=0.5, **config):
    """Return a learner whose optimizer torch itself steps without the fused kernel."""
    context = Context(RunInfo("run", 1, 1000), torch.device("cpu"), Progress(1000))
    model = Model()
    context.parts.update(model=model, loss=Loss(model, tau), hooks=LoopHooks())
    context.parts["optimizers"] = {"adam": kind(model.parameters(), lr=0.1, weight_decay=0.01)}
    return GradientLearner(GradientLearner.Config(max_grad_norm=0.5, **config), context)


def trained(learner):
    """Return what four updates, of which one is not finite, leave behind."""
    generator = torch.Generator().manual_seed(1)
    for number in range(5):
        x = torch.randn(8, 3, generator=generator)
        learner.update({"x": x * float("nan") if number == 2 else x})
    assert float(learner._steps[0].skipped) == 1
    loss, (optimizer,) = learner._loss, learner.optimizers.values()
    states = [value for state in optimizer.state.values() for value in state.values()]
    return [*loss.net.parameters(), *loss.target.parameters(), *states]


@pytest.mark.parametrize("tau", [0.5, 1.0])
@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW])
@pytest.mark.parametrize("name", [*LOOKED_UP, None])
def test_without_a_private_name_training_goes_on_with_equal_results(name, kind, tau, change):
    expected = trained(make(kind, tau))
    change(*(LOOKED_UP if name is None else (name,)))
    for found, value in zip(trained(make(kind, tau)), expected, strict=True):
        torch.testing.assert_close(found, value, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW])
def test_without_its_kernel_an_adam_steps_by_itself(kind, change):
    optimizer = make(kind).optimizers["adam"]
    assert AdamState.fits_kernel(optimizer)
    change("_fused_adam_", "_fused_adamw_")
    assert AdamState.fits(optimizer)
    assert not AdamState.fits_kernel(optimizer)


@pytest.mark.parametrize("name", [name for name in LOOKED_UP if name.endswith("hooks")])
def test_where_torch_does_not_show_who_watches_a_compiled_update_runs_eagerly(name, change, caplog):
    expected = trained(make(torch.optim.Adam))
    change(name)
    with caplog.at_level(logging.WARNING):
        learner = make(torch.optim.Adam, compile=True)
    assert "compile: this version of torch does not show who watches" in caplog.text
    for found, value in zip(trained(learner), expected, strict=True):
        torch.testing.assert_close(found, value, rtol=1e-5, atol=1e-7)


def test_the_mark_for_schedulers_may_go():
    learners = [make(torch.optim.Adam) for _ in range(2)]
    for learner in learners:
        learner.update({"x": torch.zeros(1, 3)})
    for name in WRITTEN:
        delattr(learners[0].optimizers["adam"], name)
    assert all(map(torch.equal, *map(trained, learners)))
