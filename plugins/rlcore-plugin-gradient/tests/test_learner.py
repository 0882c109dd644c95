"""The gradient step against a loop written with torch alone."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from rlcore_plugin_gradient.learner import GradientLearner
from rlcore_plugin_gradient.optimizers import AdamConfig, SGDConfig, adam, adamw, sgd
from torch import nn

from rlcore import ConfigError, Context, Progress, hookimpl
from rlcore.errors import NumericalError
from rlcore.hooks.points import Hook, LoopHooks
from rlcore.types import RunInfo

KINDS = {"adam": (adam, AdamConfig), "adamw": (adamw, AdamConfig), "sgd": (sgd, SGDConfig)}


class TwoParts(nn.Module):
    def __init__(self, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.actor = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
        self.critic = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

    def parts(self):
        return ("actor", "critic")


class Loss(nn.Module):
    """Two losses and a metric. `spoil` in the minibatch multiplies the critic's loss."""

    def __init__(self, model):
        super().__init__()
        self.actor, self.critic = model.actor, model.critic

    def forward(self, minibatch):
        error = (self.critic(minibatch["x"]) - minibatch["y"]).square().mean()
        fit = (self.actor(minibatch["x"]) - minibatch["y"]).square().mean()
        return {"loss_actor": fit, "loss_critic": 3 * error * minibatch["spoil"], "metric": error.detach()}


class ThroughCritic(Loss):
    """As in DDPG: the actor's loss goes through the critic, which another optimizer moves."""

    def forward(self, minibatch):
        target = self.critic(minibatch["x"])
        through = self.critic(torch.cat([self.actor(minibatch["x"]), minibatch["x"][:, :2]], -1))
        return {"loss_critic": (target - minibatch["y"]).square().mean(), "loss_actor": -through.mean()}


def minibatches(count=20, size=16, spoil=1.0):
    generator = torch.Generator().manual_seed(1)
    for _ in range(count):
        x = torch.randn(size, 4, generator=generator)
        yield {"x": x, "y": x.sum(-1, keepdim=True).sin(), "spoil": torch.tensor(spoil)}


def make(model, *sections, loss=Loss, hooks=(), schedulers=(), **config):
    """Build a learner; each section is (kind, name, keys)."""
    context = Context(RunInfo("run", 1, 1000), torch.device("cpu"), Progress(1000), parts={"model": model})
    context.parts["loss"] = loss(model)
    context.parts["optimizers"] = {
        name: KINDS[kind][0](KINDS[kind][1](**keys), context.for_component("optimizer", name))
        for kind, name, keys in sections
    }
    context.parts["hooks"] = LoopHooks([Hook(type(hook).__name__, hook) for hook in hooks])
    context.parts["schedulers"] = list(schedulers)
    return GradientLearner(GradientLearner.Config(**config), context)


def weights(module):
    return [parameter.detach().clone() for parameter in module.parameters()]


def equal(left, right):
    return all(map(torch.equal, left, right))


REFERENCES = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}


@pytest.mark.parametrize("max_norm", [None, 0.1, 1000.0])
@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("adam", {"lr": 1e-2}),
        ("adam", {"lr": 1e-2, "weight_decay": 0.1, "betas": [0.8, 0.95], "eps": 1e-5}),
        ("adamw", {"lr": 1e-2, "weight_decay": 0.1}),
        ("sgd", {"lr": 1e-2, "momentum": 0.9}),
    ],
)
def test_twenty_steps_are_those_of_a_loop_in_torch(kind, keys, max_norm):
    model, reference = TwoParts(), TwoParts()
    learner = make(model, (kind, kind, keys), max_grad_norm=max_norm)
    optimizer = REFERENCES[kind](reference.parameters(), **keys)
    loss = Loss(reference)
    for minibatch in minibatches():
        metrics = learner.update(dict(minibatch))
        losses = loss(minibatch)
        optimizer.zero_grad()
        (losses["loss_actor"] + losses["loss_critic"]).backward()
        norm = nn.utils.clip_grad_norm_(reference.parameters(), math.inf if max_norm is None else max_norm)
        optimizer.step()
        torch.testing.assert_close(metrics["grad_norm"], norm, rtol=1e-5, atol=1e-7)
        torch.testing.assert_close(metrics["loss_critic"], losses["loss_critic"].detach(), rtol=1e-5, atol=1e-6)
    learner.end_iteration()
    for ours, theirs in zip(weights(model), weights(reference), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
    assert not equal(weights(model), weights(TwoParts())), "the steps changed something"


@pytest.mark.filterwarnings("error")
def test_a_scheduler_of_torch_may_drive_the_optimizer():
    model, reference = TwoParts(), TwoParts()
    learner = make(model, ("adam", "adam", {"lr": 1e-2}), max_grad_norm=None)
    (ours,) = learner.optimizers.values()
    theirs = torch.optim.Adam(reference.parameters(), lr=1e-2)
    schedules = [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20) for optimizer in (ours, theirs)]
    loss = Loss(reference)
    for minibatch in minibatches():
        learner.update(dict(minibatch))
        theirs.zero_grad()
        losses = loss(minibatch)
        (losses["loss_actor"] + losses["loss_critic"]).backward()
        theirs.step()
        for schedule in schedules:
            schedule.step()  # warns of an optimizer that took no step
    for one, other in zip(weights(model), weights(reference), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_metrics_are_detached_scalars_and_hold_what_the_loss_returned():
    learner = make(TwoParts(), ("adam", "adam", {}))
    metrics = learner.update(next(minibatches()))
    assert set(metrics) == {"loss_actor", "loss_critic", "metric", "grad_norm"}
    assert all(value.dim() == 0 and not value.requires_grad for value in metrics.values())
    assert learner.progress.updates == 1


@pytest.mark.parametrize("kind", ["adam", "sgd"])
@pytest.mark.parametrize("spoil", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_changes_nothing_and_ends_the_iteration(kind, spoil):
    model = TwoParts()
    learner = make(model, (kind, kind, {"lr": 0.1}), max_grad_norm=1.0)
    good, bad = next(minibatches()), next(minibatches(spoil=spoil))
    learner.update(dict(good))
    before = weights(model)
    moments = [
        value.clone()
        for state in learner.optimizers[kind].state.values()
        for value in state.values()
        if value is not None
    ]
    for _ in range(3):
        learner.update(dict(bad))
    assert equal(weights(model), before)
    after = [
        value for state in learner.optimizers[kind].state.values() for value in state.values() if value is not None
    ]
    assert equal(moments, after)
    with pytest.raises(NumericalError, match="3 optimisation steps of iteration 0 had a loss or gradient that is not"):
        learner.end_iteration()
    learner.update(dict(good))
    learner.end_iteration()
    assert not equal(weights(model), before), "and afterwards it trains again"


def test_a_gradient_that_is_not_finite_changes_nothing():
    class Root(Loss):
        def forward(self, minibatch):
            return {"loss_root": (0 * self.actor(minibatch["x"])).abs().sqrt().mean() + 1}  # slope of a root at 0

    model = TwoParts()
    learner = make(model, ("adam", "adam", {"parameters": ["actor"]}), loss=Root)
    before = weights(model)
    metrics = learner.update(next(minibatches()))
    assert metrics["loss_root"] == 1
    assert equal(weights(model), before)
    with pytest.raises(NumericalError):
        learner.end_iteration()


def test_a_non_finite_step_moves_no_schedule():
    class Schedule:
        target = "lr"

        def value(self, initial, progress):
            return 123.0 if progress.updates else initial

    learner = make(TwoParts(), ("adam", "adam", {"lr": 0.1}), schedulers=[Schedule()])
    learner.update(next(minibatches(spoil=math.nan)))
    with pytest.raises(NumericalError):
        learner.end_iteration()
    assert learner.scheduled() == {"lr": 0.1}
    learner.end_iteration()
    assert learner.scheduled() == {"lr": 123.0}


def two(kind="adam"):
    return (
        (kind, "for-critic", {"lr": 1e-2, "parameters": ["critic"], "losses": ["loss_critic"]}),
        (kind, "for-actor", {"lr": 1e-3, "parameters": ["actor"], "losses": ["loss_actor"]}),
    )


@pytest.mark.parametrize("max_norm", [None, 0.1])
def test_two_optimizers_move_each_its_parts_by_its_losses(max_norm):
    model, reference = TwoParts(), TwoParts()
    learner = make(model, *two(), max_grad_norm=max_norm)
    references = [
        torch.optim.Adam(reference.critic.parameters(), 1e-2),
        torch.optim.Adam(reference.actor.parameters(), 1e-3),
    ]
    loss = Loss(reference)
    for minibatch in minibatches():
        metrics = learner.update(dict(minibatch))
        losses = loss(minibatch)
        for optimizer, name in zip(references, ("loss_critic", "loss_actor"), strict=True):
            optimizer.zero_grad()
            losses[name].backward()
            parameters = optimizer.param_groups[0]["params"]
            nn.utils.clip_grad_norm_(parameters, math.inf if max_norm is None else max_norm)
            optimizer.step()
    assert {"grad_norm/for-critic", "grad_norm/for-actor"} <= set(metrics)
    for ours, theirs in zip(weights(model), weights(reference), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
    assert set(learner.scheduled()) == {"lr/for-critic", "lr/for-actor"}


@pytest.mark.parametrize("kind", ["adam", "sgd"])
def test_two_optimizers_whose_losses_share_a_part_use_the_gradients_of_one_moment(kind):
    model, reference = TwoParts(), TwoParts()
    learner = make(model, *two(kind), loss=ThroughCritic)
    loss = ThroughCritic(reference)
    critic = REFERENCES[kind](reference.critic.parameters(), 1e-2)
    actor = REFERENCES[kind](reference.actor.parameters(), 1e-3)
    for minibatch in minibatches(5):
        learner.update(dict(minibatch))
        losses = loss(minibatch)
        critic_parameters, actor_parameters = (list(part.parameters()) for part in (reference.critic, reference.actor))
        critic_gradients = torch.autograd.grad(losses["loss_critic"], critic_parameters, retain_graph=True)
        actor_gradients = torch.autograd.grad(losses["loss_actor"], actor_parameters)
        pairs = zip([*critic_parameters, *actor_parameters], [*critic_gradients, *actor_gradients], strict=True)
        for parameter, gradient in pairs:
            parameter.grad = gradient
        critic.step()
        actor.step()
    for ours, theirs in zip(weights(model), weights(reference), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_parts_that_no_optimizer_names_stay_as_they_are():
    model = TwoParts()
    learner = make(model, ("adam", "adam", {"parameters": ["critic"]}))
    actor, critic = weights(model.actor), weights(model.critic)
    for minibatch in minibatches(3):
        learner.update(minibatch)
    assert equal(weights(model.actor), actor)
    assert not equal(weights(model.critic), critic)


def test_unknown_names_are_refused():
    with pytest.raises(ConfigError, match=r"\[optimizer\] 'adam': the model has no part 'acotr'; did you mean 'actor'"):
        make(TwoParts(), ("adam", "adam", {"parameters": ["acotr"]}))
    learner = make(TwoParts(), ("adam", "adam", {"losses": ["loss_acotr"]}))
    with pytest.raises(ConfigError, match="the loss returns no 'loss_acotr'; did you mean 'loss_actor'"):
        learner.update(next(minibatches()))


def test_a_loss_that_returns_nothing_to_minimise_is_refused():
    class NoLoss(Loss):
        def forward(self, minibatch):
            return {"metric": super().forward(minibatch)["metric"]}

    with pytest.raises(ConfigError, match="nothing to minimise: its keys are metric, none is loss_"):
        make(TwoParts(), ("adam", "adam", {}), loss=NoLoss).update(next(minibatches()))


def test_loading_an_optimizer_state_takes_effect():
    trained, fresh = TwoParts(), TwoParts()
    first = make(trained, ("adam", "adam", {"lr": 1e-2}))
    second = make(fresh, ("adam", "adam", {"lr": 1e-2}))
    batches = list(minibatches(20))
    for minibatch in batches[:10]:
        first.update(dict(minibatch))
        second.update(dict(batches[0]))
    fresh.load_state_dict({name: value.clone() for name, value in trained.state_dict().items()})
    second.optimizers["adam"].load_state_dict(copy.deepcopy(first.optimizers["adam"].state_dict()))
    second.load_state_dict(first.state_dict())
    for minibatch in batches[10:]:
        first.update(dict(minibatch))
        second.update(dict(minibatch))
    assert equal(weights(trained), weights(fresh))


# skipping


class Rising:
    """Counts how often the schedules moved."""

    target = "lr"

    def __init__(self):
        self.calls = 0

    def value(self, initial, progress):
        self.calls += 1
        return initial


def skipping(kind, budget, **config):
    model, schedule = TwoParts(), Rising()
    learner = make(
        model, (kind, kind, {"lr": 0.1}), schedulers=[schedule], on_nonfinite="skip", skip_budget=budget, **config
    )
    return model, learner, schedule


# adam has a fused kernel that skips on the device, sgd is skipped here
@pytest.mark.parametrize("kind", ["adam", "sgd"])
@pytest.mark.parametrize("spoil", [math.nan, math.inf])
def test_skipped_updates_change_nothing_and_training_goes_on_as_without_them(kind, spoil, caplog):
    (model, learner, schedule), (plain, without, _) = skipping(kind, 5), skipping(kind, 0)
    for number, minibatch in enumerate(minibatches(10)):
        if number % 4 == 1:
            learner.update(next(minibatches(spoil=spoil)))
        learner.update(dict(minibatch))
        learner.end_iteration()
        without.update(dict(minibatch))
        without.end_iteration()
    assert equal(weights(model), weights(plain))
    assert schedule.calls == 11, "when it was built, and after each iteration"
    assert (learner.skipped_updates, without.skipped_updates) == (3, 0)
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 3
    assert messages[-1].startswith("1 optimisation steps of iteration 0 had a loss or gradient that is not finite")
    assert messages[-1].endswith("were skipped, 3 of 5")


@pytest.mark.parametrize("kind", ["adam", "sgd"])
def test_when_the_budget_is_spent_the_run_stops(kind):
    model, learner, _ = skipping(kind, 3)
    before = weights(model)
    for _ in range(3):
        learner.update(next(minibatches(spoil=math.nan)))
        learner.end_iteration()
    learner.update(next(minibatches(spoil=math.nan)))
    with pytest.raises(NumericalError, match=r"1 optimisation steps of iteration 0 .* the iteration is discarded"):
        learner.end_iteration()
    assert equal(weights(model), before)


def test_the_budget_is_that_of_the_whole_run_over_all_resumes():
    _, first, _ = skipping("adam", 3)
    for _ in range(2):
        first.update(next(minibatches(spoil=math.nan)))
    first.end_iteration()
    _, second, _ = skipping("adam", 3)
    second.load_state_dict(first.state_dict())
    for _ in range(2):
        second.update(next(minibatches(spoil=math.nan)))
    with pytest.raises(NumericalError):
        second.end_iteration()


def test_without_skipping_the_budget_counts_for_nothing():
    learner = make(TwoParts(), ("adam", "adam", {"lr": 0.1}), skip_budget=100)
    learner.update(next(minibatches(spoil=math.nan)))
    with pytest.raises(NumericalError):
        learner.end_iteration()


@pytest.fixture
def fresh_compiler():
    """Forget what other tests compiled."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class OwnBackward:
    """Pulls a weight of the actor towards zero by a backward of its own, before every other step."""

    def __init__(self):
        self.calls = 0
        self.weight = None

    @hookimpl
    def process_optim_batch(self):
        self.calls += 1
        if self.calls % 2:
            self.weight.square().sum().backward()


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("kind", ["adam", "sgd"])
@pytest.mark.parametrize("flag", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["eager", "compiled"])
def test_gradients_of_a_hooks_own_backward_count(kind, flag):
    if flag and kind == "sgd":
        pytest.skip("only adam is compiled")
    hook, model, reference = OwnBackward(), TwoParts(), TwoParts()
    hook.weight = model.actor[0].weight
    learner = make(model, (kind, kind, {"lr": 1e-2}), hooks=[hook], max_grad_norm=1.0, compile=flag)
    optimizer, loss = REFERENCES[kind](reference.parameters(), lr=1e-2), Loss(reference)
    for number, minibatch in enumerate(minibatches(6)):
        learner.update(dict(minibatch))
        assert learner.inexact() is None
        optimizer.zero_grad()
        if number % 2 == 0:
            reference.actor[0].weight.square().sum().backward()
        losses = loss(minibatch)
        (losses["loss_actor"] + losses["loss_critic"]).backward()
        nn.utils.clip_grad_norm_(reference.parameters(), 1.0)
        optimizer.step()
    for ours, theirs in zip(weights(model), weights(reference), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_gradients_for_the_next_step_make_a_checkpoint_inexact():
    model = TwoParts()
    learner = make(model, ("adam", "adam", {}))
    learner.update(next(minibatches()))
    model.actor[0].weight.sum().backward()
    assert "gradients for the next step" in learner.inexact()
