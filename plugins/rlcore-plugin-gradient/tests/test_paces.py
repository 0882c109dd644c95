"""Optimizers of several paces: who steps when, what is asked of the loss, and what cannot be trained."""

from __future__ import annotations

import copy

import pytest
import torch
from rlcore_plugin_gradient.learner import GradientLearner
from rlcore_plugin_gradient.optimizers import AdamConfig, SGDConfig, adam, sgd
from rlcore_plugin_gradient.targets import TargetUpdater
from rlcore_plugin_testing.compare import difference
from rlcore_plugin_testing.ranks import in_ranks
from torch import nn

from rlcore import ConfigError, Context, Progress, hookimpl
from rlcore.buffers.minibatch import Minibatch
from rlcore.errors import NumericalError
from rlcore.hooks.points import Hook, LoopHooks
from rlcore.types import Alone, RunInfo


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Linear(3, 2)
        self.critics = nn.Linear(5, 2)
        generator = torch.Generator().manual_seed(0)  # of its own: ranks build theirs at the same time
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.5, 0.5, generator=generator)
        self.temperature = nn.ParameterDict({"log": torch.zeros(())})

    def parts(self):
        return ("actor", "critics", "temperature")


class Separate(nn.Module):
    """The losses of SAC in small, with a count of what was computed."""

    loss_names = ("loss_critic", "loss_actor", "loss_temperature")

    def __init__(self, model):
        super().__init__()
        self.actor, self.critics, self.temperature = model.actor, model.critics, model.temperature
        self.asked = []

    def sample_noise(self, samples, generator):
        return {"noise": torch.randn(2, samples, 2, generator=generator, device=generator.device)}

    def forward(self, minibatch, names=None):
        if not torch.compiler.is_compiling():
            self.asked.append(tuple(names))
        x, noise = minibatch["x"], minibatch["noise"]
        result = {}
        if "loss_critic" in names:
            with torch.no_grad():
                wanted = x.sum(-1, keepdim=True) + noise[0].mean()
            value = self.critics(torch.cat([x, minibatch["action"]], -1))
            result |= {"loss_critic": (value - wanted).square().mean(), "value": value.detach().mean()}
        action = (self.actor(x) + noise[1]).tanh()
        if "loss_actor" in names:
            weight, bias = self.critics.weight.detach(), self.critics.bias.detach()
            values = nn.functional.linear(torch.cat([x, action], -1), weight, bias)
            alpha = self.temperature["log"].detach().exp()
            result["loss_actor"] = (alpha * action.square().sum(-1) - values.amin(-1)).mean()
        if "loss_temperature" in names:
            result["loss_temperature"] = self.temperature["log"] * (action.detach().square().mean() - 0.1)
        return result


class Whole(nn.Module):
    """A loss without names: the same numbers, computed whole."""

    def __init__(self, model):
        super().__init__()
        self.inner = Separate(model)
        self.asked = self.inner.asked

    def sample_noise(self, samples, generator):
        return self.inner.sample_noise(samples, generator)

    def forward(self, minibatch):
        return self.inner(minibatch, Separate.loss_names)


KINDS = {"adam": (adam, AdamConfig), "sgd": (sgd, SGDConfig)}


def sections(every=2, kind="adam"):
    return (
        ("critics", kind, {"lr": 0.01, "parameters": ["critics"], "losses": ["loss_critic"]}),
        ("actor", kind, {"lr": 0.02, "parameters": ["actor"], "losses": ["loss_actor"], "every": every}),
        (
            "temperature",
            kind,
            {"lr": 0.03, "parameters": ["temperature"], "losses": ["loss_temperature"], "every": every},
        ),
    )


class Normalised(Separate):
    """The critics see normalised inputs, whose statistics run, and have targets that follow a little at a time."""

    tau, interval = 0.25, 1

    def __init__(self, model):
        super().__init__(model)
        torch.manual_seed(0)
        model.critics = nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 2))
        model.target = copy.deepcopy(model.critics)
        self.critics = model.critics[1]
        self.norm, self.target = model.critics[0], model.target
        self.target_updater = TargetUpdater([(model.critics, model.target)], self.interval, self.tau)

    def forward(self, minibatch, names=None):
        result = {}
        if "loss_critic" in names:
            pair = torch.cat([minibatch["x"], minibatch["action"]], -1)
            wanted = self.target[1](pair).detach() + minibatch["x"].sum(-1, keepdim=True)
            result["loss_critic"] = (self.critics(self.norm(pair)) - wanted).square().mean()
        others = [name for name in names if name != "loss_critic"]
        return result | super().forward(minibatch, others)


def learner_of(*wanted, loss=Separate, group=None, hooks=(), **config):
    model = Model()
    built = loss(model)
    context = Context(
        RunInfo("run", 1, 1000), torch.device("cpu"), Progress(1000), "learner", "gradient", group=group or Alone()
    )
    context.parts.update(model=model, loss=built, hooks=LoopHooks([Hook("hook", hook) for hook in hooks]))
    context.parts["optimizers"] = {
        name: KINDS[kind][0](KINDS[kind][1](**keys), context.for_component("optimizer", name))
        for name, kind, keys in wanted
    }
    return GradientLearner(GradientLearner.Config(**config), context)


def minibatches(count=6, rows=8):
    generator = torch.Generator().manual_seed(2)
    return [
        {"x": torch.randn(rows, 3, generator=generator), "action": torch.randn(rows, 2, generator=generator)}
        for _ in range(count)
    ]


def train(learner, data):
    return [learner.update(dict(minibatch)) for minibatch in data]


def weights(learner, part=None):
    module = learner.model if part is None else getattr(learner.model, part)
    return [tensor.detach().clone() for tensor in (*module.parameters(), *module.buffers())]


def test_the_learner_asks_for_the_losses_that_are_due_and_no_other():
    learner = learner_of(*sections(every=3))
    values = train(learner, minibatches())
    everything = Separate.loss_names
    assert learner._loss.asked == [("loss_critic",), ("loss_critic",), everything] * 2
    assert set(values[0]) == {"loss_critic", "value", "grad_norm/critics"}
    steps = {"grad_norm/critics", "grad_norm/actor", "grad_norm/temperature"}
    assert set(values[2]) == {*everything, "value", *steps}


def test_an_optimizer_moves_its_parameters_in_its_updates_alone():
    learner = learner_of(*sections(every=2))
    for number, minibatch in enumerate(minibatches(), start=1):
        before = {part: weights(learner, part) for part in learner.model.parts()}
        learner.update(dict(minibatch))
        moved = {part for part in before if not all(map(torch.equal, before[part], weights(learner, part)))}
        assert moved == ({"critics"} if number % 2 else {"critics", "actor", "temperature"})


@pytest.mark.parametrize("every", [1, 2])
def test_a_loss_that_is_computed_whole_trains_alike(every):
    separate, whole = learner_of(*sections(every)), learner_of(*sections(every), loss=Whole)
    train(separate, minibatches()), train(whole, minibatches())
    assert all(map(torch.equal, weights(separate), weights(whole)))


def test_one_optimizer_for_all_trains_what_three_do():
    plain = {"lr": 0.1}
    three = [(name, "sgd", {**keys, **plain}) for name, _, keys in sections(every=1)]
    one, several = learner_of(("sgd", "sgd", plain)), learner_of(*three)
    train(one, minibatches()), train(several, minibatches())
    for left, right in zip(weights(one), weights(several), strict=True):
        torch.testing.assert_close(left, right, rtol=1e-5, atol=1e-7)


class Following(Separate):
    """Its losses are taken in turn, each at the weights that the step before left."""

    in_turn = True


class FollowingNormalised(Normalised):
    """The same, with statistics and targets."""

    in_turn = True


def test_losses_in_turn_are_those_of_a_loop_that_steps_after_each():
    """By hand, in the order of the losses, which is not that of the config; the noise is that of the update."""
    learner = learner_of(*reversed(sections(every=1, kind="sgd")), loss=Following)
    model = Model()
    loss, rates = Separate(model), {"critics": 0.01, "actor": 0.02, "temperature": 0.03}
    generator = torch.Generator()
    for minibatch in minibatches():
        generator.set_state(learner._noise._generator.get_state())
        entries = minibatch | loss.sample_noise(len(minibatch["x"]), generator)
        values = learner.update(dict(minibatch))
        for name, part in zip(Separate.loss_names, rates, strict=True):
            taken = loss(entries, (name,))[name]
            assert torch.equal(values[name], taken)
            parameters = list(getattr(model, part).parameters())
            for parameter, gradient in zip(parameters, torch.autograd.grad(taken, parameters), strict=True):
                parameter.data.add_(gradient, alpha=-rates[part])  # in one rounding, as SGD does
    by_hand = [parameter.detach() for parameter in model.parameters()]
    torch.testing.assert_close(weights(learner), by_hand, rtol=1e-6, atol=1e-7)
    assert learner._loss.asked == [(name,) for name in Separate.loss_names] * 6
    together = learner_of(*sections(every=1, kind="sgd"))
    train(together, minibatches())
    assert not torch.equal(weights(together, "actor")[0], weights(learner, "actor")[0])


def test_optimizers_in_turn_keep_their_paces_and_those_that_name_no_losses_step_together():
    learner = learner_of(*sections(every=3), loss=Following)
    train(learner, minibatches())
    alone = [(name,) for name in Separate.loss_names]
    assert learner._loss.asked == [("loss_critic",), ("loss_critic",), *alone] * 2
    of_all = learner_of(("adam", "adam", {"lr": 0.01}), loss=Following)
    train(of_all, minibatches(1))
    assert of_all._loss.asked == [Separate.loss_names]


def test_an_update_at_which_nobody_steps_computes_nothing_and_counts():
    learner = learner_of(("adam", "adam", {"every": 2}))
    before = weights(learner)
    assert learner.update(minibatches()[0]) == {}
    assert learner._loss.asked == []
    assert learner.progress.updates == 1
    assert all(map(torch.equal, before, weights(learner)))
    assert "grad_norm" in learner.update(minibatches()[1])


def test_the_noise_is_for_the_loss_alone():
    seen = []

    class Reads(Separate):
        def forward(self, minibatch, names=None):
            seen.append((set(minibatch), "noise" in minibatch, minibatch.get("absent", 3), len(minibatch)))
            return super().forward(minibatch, names)

    from tensordict import TensorDict

    (entries,) = minibatches(1)
    for kind in (dict, Minibatch.of, lambda found: TensorDict(found, batch_size=[8])):
        given = kind(entries)
        learner_of(*sections(), loss=Reads).update(given)
        assert set(given.keys()) == {"x", "action"}
        assert seen.pop() == ({"x", "action", "noise"}, True, 3, 3)


def test_noise_under_the_name_of_an_entry_is_refused():
    class Taken(Separate):
        def sample_noise(self, samples, generator):
            return {"x": torch.zeros(samples, 3)}

    from tensordict import TensorDict

    (entries,) = minibatches(1)
    for kind in (dict, Minibatch.of, lambda found: TensorDict(found, batch_size=[8])):
        with pytest.raises(ConfigError, match=r"\[loss\] sample_noise of Taken returns an entry 'x', which the minib"):
            learner_of(*sections(), loss=Taken).update(kind(entries))


def test_noise_that_is_no_mapping_is_refused():
    class Bare(Separate):
        def sample_noise(self, samples, generator):
            return torch.zeros(samples, 3)

    with pytest.raises(ConfigError, match=r"\[loss\] sample_noise of Bare returned a Tensor; return a dict of entries"):
        learner_of(*sections(), loss=Bare).update(*minibatches(1))


def changed(number, **keys):
    found = list(sections())
    name, kind, old = found[number]
    found[number] = (name, kind, {key: value for key, value in {**old, **keys}.items() if value is not None})
    return found


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (changed(1, losses=["loss_actr"]), "the loss returns no 'loss_actr'; did you mean 'loss_actor'"),
        (changed(1, losses=["loss_critic"]), "'critics' and 'actor' both minimise 'loss_critic'"),
        (changed(1, losses=None), "'critics' and 'actor' both minimise 'loss_critic', as one without"),
        (sections()[:2], "no optimizer minimises 'loss_temperature'"),
        (changed(1, parameters=["critics"]), "'critics' and 'actor' both move 'critics.weight'"),
        (changed(1, parameters=None), "'critics' and 'actor' both move 'critics.weight'"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_the_first_update(wanted, message):
    with pytest.raises(ConfigError, match=r"^\[optimizer\] (losses|parameters): ") as caught:
        learner_of(*wanted)
    assert message in str(caught.value)


def test_optimizers_of_a_loss_that_says_nothing_of_its_parts_are_refused_at_the_first_update_by_name():
    swapped = changed(0, parameters=["actor"])
    swapped[1] = changed(1, parameters=["critics"], every=None)[1]
    learner = learner_of(*swapped)
    with pytest.raises(ConfigError, match=r"\[optimizer\] 'critics': the losses depend on none of the 2 parameters"):
        learner.update(*minibatches(1))


def test_the_losses_of_one_without_names_are_compared_at_its_first_update():
    learner = learner_of(*sections()[:2], loss=Whole)
    with pytest.raises(ConfigError, match=r"\[optimizer\] losses: no optimizer minimises 'loss_temperature'"):
        learner.update(*minibatches(1))


def resumed(used, **config):
    """Return another learner with all that is saved of one, and its clocks."""
    other = learner_of(*sections(), loss=type(used._loss), **config)
    other.model.load_state_dict(copy.deepcopy(used.model.state_dict()))
    for name, optimizer in used.optimizers.items():
        other.optimizers[name].load_state_dict(copy.deepcopy(optimizer.state_dict()))
    other.progress.updates = used.progress.updates
    other.load_state_dict(used.state_dict())
    return other


@pytest.fixture
def fresh_compiler():
    """Forget what other tests compiled."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


COMPILED = pytest.param(True, marks=pytest.mark.slow)


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("compiled", [False, COMPILED], ids=["eager", "compiled"])
@pytest.mark.parametrize("loss", [Normalised, FollowingNormalised])
def test_a_resume_between_two_steps_of_the_actor_goes_on_exactly(loss, compiled):
    used = learner_of(*sections(), loss=loss, compile=compiled)
    train(used, minibatches()[:3])
    other = resumed(used, compile=compiled)
    values = train(used, minibatches()[3:]), train(other, minibatches()[3:])
    assert difference(*values) is None
    assert all(map(torch.equal, weights(used), weights(other)))


@pytest.mark.parametrize("loss", [Separate, Following])
@pytest.mark.parametrize("sizes", [(4, 4), (8, 0)], ids=str)
def test_two_ranks_step_at_the_same_pace(sizes, loss):
    def states(group):
        learner = learner_of(*sections(kind="sgd"), loss=loss, group=group)
        first = sizes[0] if group.rank else 0
        for minibatch in minibatches():
            rows = slice(first, first + sizes[group.rank])
            learner.update({name: value[rows] for name, value in minibatch.items()})
        return weights(learner), learner.state_dict()

    one, other = in_ranks(2, states)
    assert difference(one, other) is None


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("compiled", [False, COMPILED], ids=["eager", "compiled"])
def test_an_update_that_is_not_finite_leaves_the_statistics_and_moves_on_after_it(compiled):
    learner = learner_of(*sections(every=1), loss=Normalised, compile=compiled)
    good, bad = minibatches(2)
    norm = learner._loss.norm
    learner.update(dict(good))
    before = {name: value.clone() for name, value in norm.named_buffers()}
    assert before["num_batches_tracked"] == 1
    bad["x"][0] = torch.nan
    learner.update(bad)
    assert difference(before, dict(norm.named_buffers())) is None
    with pytest.raises(NumericalError):
        learner.check_finite()
    learner.update(dict(good))
    assert norm.num_batches_tracked == 2


class StepsByHook:
    """Takes the learner's own steps."""

    @hookimpl
    def optimizer(self, losses, learner):
        return learner.step(losses)


class StepsItself(StepsByHook):
    """Takes a step of its own, which it leaves out where the loss is not finite."""

    @hookimpl
    def optimizer(self, losses, learner):
        total = losses["loss_critic"]
        if total.isfinite():
            total.backward()
            learner.optimizers["critics"].step()
            learner.optimizers["critics"].zero_grad()
        return {}


@pytest.mark.parametrize("hook", [StepsByHook, StepsItself])
def test_a_step_of_a_hook_that_is_not_finite_leaves_the_statistics(hook):
    learner = learner_of(*sections(every=1), loss=Normalised, hooks=[hook()])
    good, bad = minibatches(2)
    norm = learner._loss.norm
    learner.update(dict(good))
    before = {name: value.clone() for name, value in norm.named_buffers()}
    bad["x"][0] = torch.nan
    learner.update(dict(bad))
    learner.update(dict(bad))
    assert difference(before, dict(norm.named_buffers())) is None
    learner.update(dict(good))
    assert norm.num_batches_tracked == 2


class Statistical(Whole):
    """Changes a buffer in each update."""

    def __init__(self, model):
        super().__init__(model)
        model.register_buffer("count", torch.zeros(()))
        self.model = model

    def forward(self, minibatch):
        self.model.count += 1
        return super().forward(minibatch)


def test_several_processes_do_not_train_statistics():
    class Two:
        size, rank = 2, 0

        def sum_(self, flat):
            pass

    learner = learner_of(*sections(), loss=Statistical, group=Two())
    with pytest.raises(ConfigError, match=r"\[loss\] changes model.count in each update; of several processes"):
        train(learner, minibatches(1))


class AsOne(Separate):
    """Written for a loss that took a minibatch alone."""

    def forward(self, minibatch):
        return super().forward(minibatch, self.loss_names)


def test_a_subclass_whose_forward_takes_a_minibatch_alone_is_asked_for_all():
    one, other = learner_of(*sections(), loss=AsOne), learner_of(*sections())
    assert difference(train(one, minibatches()), train(other, minibatches())) is not None  # metrics of all losses
    assert all(map(torch.equal, weights(one), weights(other)))


class InTurn:
    """One of two ranks that update one after the other: the one with rows first."""

    size = 2

    def __init__(self, rank, told):
        self.rank = rank
        self._told = told

    def sum_(self, flat):
        if flat[-1]:
            self._told.append(flat.clone())
        else:
            flat.copy_(self._told.pop())

    def share(self, numbers):
        return [tuple(numbers)] * 2


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("compiled", [False, COMPILED], ids=["eager", "compiled"])
def test_a_rank_without_rows_takes_the_steps_of_the_other_at_every_pace(compiled):
    told = []
    ranks = [learner_of(*sections(), group=InTurn(rank, told), compile=compiled) for rank in range(2)]
    for number, minibatch in enumerate(minibatches()):
        first, second = ranks if number in (0, 1, 4) else reversed(ranks)
        first.update(minibatch)
        metrics = second.update({name: value[:0] for name, value in minibatch.items()})
        assert len(metrics) == (1 if number % 2 == 0 else 3), "norms of the optimizers that stepped"
    assert not told
    assert not compiled or ranks[0]._compiled._functions
    assert all(map(torch.equal, *map(weights, ranks)))
    assert difference(*(rank.state_dict() for rank in ranks)) is None
    before = weights(learner_of(*sections()))
    assert not any(map(torch.equal, weights(ranks[0]), before))
