"""A loss with noise: the learner samples it, so that the loss is a function, and a resume goes on exactly."""

from __future__ import annotations

import copy

import pytest
import torch
from rlcore_plugin_gradient.learner import GradientLearner
from rlcore_plugin_gradient.optimizers import AdamConfig, adam
from rlcore_plugin_testing.compare import difference
from rlcore_plugin_testing.ranks import in_ranks
from torch import nn

from rlcore import Context, HookError, Progress
from rlcore.hooks.points import LoopHooks
from rlcore.learners.module import ModuleLearner
from rlcore.types import Alone, RunInfo


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Linear(3, 2)
        with torch.no_grad():
            for number, parameter in enumerate(self.parameters()):
                parameter.fill_(0.1 * (number + 1))

    def parts(self):
        return ("actor",)


class Noisy(nn.Module):
    """As in SAC: the action is a sample, `mean + noise`."""

    def __init__(self, model):
        super().__init__()
        self.actor = model.actor
        self.seen = []

    def sample_noise(self, samples, generator):
        self.seen.append(torch.randn(samples, 2, generator=generator, device=generator.device))
        return {"noise": self.seen[-1]}

    def forward(self, minibatch):
        noise = minibatch["noise"]
        action = self.actor(minibatch["x"]) + noise
        return {"loss_actor": (action - 1).square().mean(), "noise": noise.mean()}


class Plain(Noisy):
    sample_noise = None

    def forward(self, minibatch):
        return super().forward({**minibatch, "noise": torch.zeros(1)})


def learner_of(loss=Noisy, seed=1, group=None, **config):
    model = Model()
    context = Context(
        RunInfo("run", seed, 1000), torch.device("cpu"), Progress(1000), "learner", "gradient", group=group or Alone()
    )
    context.parts.update(model=model, loss=loss(model), hooks=LoopHooks())
    context.parts["optimizers"] = {"adam": adam(AdamConfig(lr=0.01), context)}
    return GradientLearner(GradientLearner.Config(**config), context)


def minibatches(count=4, rows=8):
    generator = torch.Generator().manual_seed(2)
    return [{"x": torch.randn(rows, 3, generator=generator)} for _ in range(count)]


def weights(learner):
    return [parameter.detach().clone() for parameter in learner.model.parameters()]


def train(learner, data):
    return [learner.update(dict(minibatch)) for minibatch in data]


def noise_seen(learner):
    return learner._loss.seen


def test_each_update_has_noise_of_its_own_from_the_seed_of_the_run():
    one, same, other = learner_of(), learner_of(), learner_of(seed=2)
    for learner in (one, same, other):
        torch.rand(())  # the global generator has no part in it
        train(learner, minibatches())
    assert [noise.shape for noise in noise_seen(one)] == [(8, 2)] * 4
    assert all(map(torch.equal, noise_seen(one), noise_seen(same)))
    assert not any(map(torch.equal, noise_seen(one), noise_seen(other)))
    assert not torch.equal(noise_seen(one)[0], noise_seen(one)[1])


def test_a_resume_goes_on_exactly():
    whole, first, resumed = learner_of(), learner_of(), learner_of()
    train(whole, minibatches())
    train(first, minibatches()[:2])
    resumed.model.load_state_dict(first.model.state_dict())
    resumed.optimizers["adam"].load_state_dict(copy.deepcopy(first.optimizers["adam"].state_dict()))
    resumed.load_state_dict(first.state_dict())
    train(resumed, minibatches()[2:])
    assert all(map(torch.equal, weights(whole), weights(resumed)))


def test_a_learner_without_noise_keeps_its_state_and_one_with_noise_loads_an_older_state():
    assert set(learner_of(Plain).state_dict()) == {"skipped_updates"}
    assert set(learner_of().state_dict()) == {"skipped_updates", "noise"}
    learner = learner_of()
    learner.load_state_dict({"skipped_updates": 3})
    assert learner.skipped_updates == 3


def test_the_ranks_of_a_group_have_other_noise_and_one_state():
    def states(group):
        learner = learner_of(group=group)
        for number, minibatch in enumerate(minibatches()):
            nothing = number == 2 and group.rank == 0
            learner.update({"x": minibatch["x"][:0] if nothing else minibatch["x"]})
        return noise_seen(learner), weights(learner), learner.state_dict()

    (ones, one, state), (others, other, other_state) = in_ranks(2, states)
    assert [len(noise) for noise in ones] == [8, 8, 0, 8]
    assert all(map(torch.equal, one, other))
    assert difference(state, other_state) is None
    same = [torch.equal(left, right) for left, right in zip(ones, others, strict=True)]
    assert same == [False] * 4


def test_the_learner_of_a_script_refuses_a_loss_with_noise():
    with pytest.raises(HookError, match=r"the loss Noisy has sample_noise, .* train it from a config"):
        ModuleLearner(Noisy(Model()), LoopHooks(), Progress(1000), None, dict)
