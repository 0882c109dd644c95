"""Several processes that train one model: they skip alike, and take the mean over all rows."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch
from rlcore_plugin_gradient.learner import GradientLearner
from rlcore_plugin_gradient.optimizers import AdamConfig, SGDConfig, adam, sgd
from rlcore_plugin_testing.ranks import in_ranks
from torch import nn

from rlcore import Context, Minibatch, NumericalError, OptimizerHook, Progress
from rlcore.hooks.points import Hook, LoopHooks
from rlcore.hooks.specs import hookimpl
from rlcore.learners.base import Turn
from rlcore.learners.clipped_step import ClippedStep
from rlcore.learners.joint import rows_of
from rlcore.learners.module import ModuleLearner
from rlcore.types import Alone, RunInfo

KINDS = {"adam": (adam, AdamConfig), "sgd": (sgd, SGDConfig)}
ONE = (("adam", "all", {"lr": 0.01}),)
TWO = (
    ("adam", "a", {"lr": 0.01, "parameters": ["a"], "losses": ["loss_a"]}),
    ("sgd", "b", {"lr": 0.1, "parameters": ["b"], "losses": ["loss_b"]}),
)


@torch.no_grad()
def fill(module):
    """Set weights from a generator of their own: the threads of the ranks share the global one."""
    generator = torch.Generator().manual_seed(0)
    for parameter in module.parameters():
        parameter.uniform_(-0.5, 0.5, generator=generator)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 2), nn.Linear(3, 1)
        fill(self)

    def parts(self):
        return ("a", "b")


class Loss(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.a, self.b = model.a, model.b

    def forward(self, minibatch):
        x = minibatch["x"]
        assert len(x), "without rows a mean is not a number"
        return {"loss_a": (self.a(x) - x[:, :2]).square().mean(), "loss_b": (self.b(x) - 1).square().mean()}


def learner_of(group, sections=ONE, hooks=(), loss=Loss, **config):
    model = Model()
    context = Context(RunInfo("run", 1, 1000), torch.device("cpu"), Progress(1000), kind="learner", group=group)
    context.parts.update(model=model, loss=loss(model), hooks=LoopHooks([Hook("hook", hook) for hook in hooks]))
    context.parts["optimizers"] = {
        name: KINDS[kind][0](KINDS[kind][1](**keys), context) for kind, name, keys in sections
    }
    return GradientLearner(GradientLearner.Config(**config), context)


def weights(learner):
    return [parameter.detach().clone() for parameter in learner.model.parameters()]


def data(steps=5, rows=12, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(rows, 3, generator=generator) for _ in range(steps)]


def parts(x, *sizes):
    """Return a minibatch of each size for the ranks."""
    return [Minibatch.of({"x": part}) for part in torch.split(x, sizes)]


def trained_in_ranks(shares, **options):
    """Let each rank train on its share of each minibatch; return the learners."""

    def train(group):
        learner = learner_of(group, **options)
        for x in shares:
            learner.update(x[group.rank])
        return learner

    return in_ranks(2, train)


def trained_alone(minibatches, **options):
    learner = learner_of(Alone(), **options)
    for x in minibatches:
        learner.update({"x": x})
    return learner


def assert_close(ones, others, **tolerance):
    for one, other in zip(ones, others, strict=True):
        torch.testing.assert_close(one, other, **(tolerance or {"rtol": 1e-5, "atol": 1e-6}))


@pytest.mark.parametrize("max_grad_norm", [None, 0.1])
@pytest.mark.parametrize("sections", [ONE, TWO], ids=["one optimizer", "two"])
@pytest.mark.parametrize("sizes", [(6, 6), (9, 3), (12, 0), (0, 12)], ids=str)
def test_two_ranks_on_parts_are_one_on_all_rows(sizes, sections, max_grad_norm):
    options = {"sections": sections, "max_grad_norm": max_grad_norm}
    one, other = trained_in_ranks([parts(x, *sizes) for x in data()], **options)
    assert all(map(torch.equal, weights(one), weights(other)))
    assert_close(weights(one), weights(trained_alone(data(), **options)))


def test_the_norm_is_that_of_all_rows_and_each_update_sums_once():
    x = data(1)[0]

    def train(group):
        learner = learner_of(group, sections=TWO)
        metrics = learner.update(parts(x, 9, 3)[group.rank])
        return metrics, group.sums

    expected = learner_of(Alone(), sections=TWO).update({"x": x})
    for metrics, sums in in_ranks(2, train):
        assert sums == 1
        for name in ("grad_norm/a", "grad_norm/b"):
            torch.testing.assert_close(metrics[name], expected[name])


@pytest.mark.parametrize("sections", [ONE, TWO], ids=["one optimizer", "two"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("bad", [0, 1])
def test_a_loss_that_is_not_finite_on_one_rank_is_skipped_by_all(bad, value, sections):
    good, spoilt = data(1)[0], data(1)[0]

    def train(group):
        learner = learner_of(group, sections=sections)
        learner.update(parts(good, 6, 6)[group.rank])
        before = weights(learner)
        mine = parts(spoilt, 6, 6)[group.rank]
        if group.rank == bad:
            mine["x"] = torch.full_like(mine["x"], value)
        learner.update(mine)
        assert all(map(torch.equal, before, weights(learner)))
        with pytest.raises(NumericalError):
            learner.end_iteration()
        learner.update(parts(good, 6, 6)[group.rank])
        learner.end_iteration()
        return weights(learner)

    assert all(map(torch.equal, *in_ranks(2, train)))


def test_a_parameter_without_a_gradient_on_one_rank_takes_that_of_the_other():
    class OnlyA(Loss):
        def forward(self, minibatch):
            losses = super().forward(minibatch)
            return {"loss_a": losses["loss_a"]} if minibatch["x"][0, 0] == 0 else losses

    shares = parts(data(1)[0], 6, 6)
    shares[1]["x"][0, 0] = 0
    one, other = trained_in_ranks([shares], loss=OnlyA)
    assert all(map(torch.equal, weights(one), weights(other)))
    assert not torch.equal(one.model.b.weight, Model().b.weight)


class OwnsTheStep:
    @hookimpl
    def optimizer(self, losses, learner):
        return learner.step(losses)


class Doubles:
    @hookimpl
    def post_loss(self, losses):
        assert losses
        return {name: 2 * value for name, value in losses.items()}


@pytest.mark.parametrize("hook", [OwnsTheStep, Doubles])
def test_hooks_between_loss_and_step_are_for_ranks_with_rows(hook):
    learners = trained_in_ranks([parts(x, 12, 0) for x in data()], hooks=[hook()])
    alone = trained_alone(data(), hooks=[hook()])
    for learner in learners:
        assert_close(weights(learner), weights(alone))


def test_a_process_that_trains_alone_has_nothing_around_its_update():
    learner = learner_of(Alone())
    assert learner.group.size == 1
    assert learner._minimise == learner.minimise


@pytest.mark.parametrize("clip_grad_norm", [True, False])
@pytest.mark.parametrize("sizes", [(6, 6), (9, 3), (12, 0)], ids=str)
def test_the_optimizer_hook_of_a_script_joins(sizes, clip_grad_norm):
    class Script:
        """What a hook sees of a trainer."""

        def __init__(self, learner):
            self.learner = learner

    def train(group):
        loss = Loss(Model())
        hook = OptimizerHook(torch.optim.Adam(loss.parameters(), lr=0.01))
        points = LoopHooks([Hook("optimizer", Point(hook, clip_grad_norm))])
        learner = ModuleLearner(loss, points, Progress(1000), None, dict, group)
        hook.attach(Script(learner))
        shares = (12,) if group.size == 1 else sizes
        for x in data():
            learner.update(parts(x, *shares)[group.rank])
        hook.check_losses()
        return [parameter.detach() for parameter in loss.parameters()]

    one, other = in_ranks(2, train)
    assert all(map(torch.equal, one, other))
    assert_close(one, train(Alone()))


class Point:
    def __init__(self, hook, clip_grad_norm):
        self.hook, self.clip_grad_norm = hook, clip_grad_norm

    @hookimpl
    def optimizer(self, losses):
        return self.hook(losses, self.clip_grad_norm, 0.1, 0)


def test_groups_of_parameters_that_a_script_adds_are_summed_too():
    def train(group):
        model = Model()
        optimizer = torch.optim.Adam(model.a.parameters(), lr=0.01)
        learner = SimpleNamespace(group=group, turn=Turn({}, {}, rows=6))
        step = ClippedStep(optimizer, (), learner)
        for number, x in enumerate(data()):
            if number == 2:
                optimizer.add_param_group({"params": list(model.b.parameters())})
            step(Loss(model)({"x": torch.split(x, 6)[group.rank]} if group.size > 1 else {"x": x}), True, None)
            model.zero_grad()
        return [parameter.detach() for parameter in model.parameters()]

    one, other = in_ranks(2, train)
    assert all(map(torch.equal, one, other))
    assert_close(one, train(Alone()))


def test_gradients_lie_in_memory_as_their_parameters_do():
    class Images(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Conv2d(3, 4, 2).to(memory_format=torch.channels_last)
            self.b = nn.Linear(2, 2)
            fill(self)

        def forward(self, x):
            return self.b(self.a(x).mean((2, 3))[:, :2]).square().mean()

    def train(group):
        model = Images()
        learner = SimpleNamespace(group=group, turn=Turn({}, {}, rows=2))
        step = ClippedStep(torch.optim.Adam(model.parameters(), lr=0.1), (), learner)
        x = torch.randn(4, 3, 5, 5, generator=torch.Generator().manual_seed(1))
        for _ in range(3):
            step({"loss": model(torch.split(x, 2)[group.rank] if group.size > 1 else x)}, True, None)
        return [parameter.detach() for parameter in model.parameters()]

    one, other = in_ranks(2, train)
    assert all(map(torch.equal, one, other))
    assert_close(one, train(Alone()))


def test_the_rows_of_a_minibatch():
    from tensordict import TensorDict

    x = torch.zeros(4, 2, 3)
    assert rows_of({"x": x}) == 4
    assert rows_of(Minibatch.of({"x": x})) == 4
    assert rows_of(TensorDict({"x": x}, batch_size=[4, 2])) == 8
