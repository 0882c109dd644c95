"""The ensemble: what its members compute, learn and imagine."""

import copy

import pytest
import torch
from rlcore_plugin_mbpo.dynamics import Dynamics
from rlcore_plugin_mbpo.replay import ImaginedReplay
from rlcore_plugin_mbpo.training import DynamicsTraining, Rows

from rlcore.types import Context


def ensemble(count=4, elites=2, hidden=(16, 16), learns=True):
    generator = torch.Generator().manual_seed(0)
    return Dynamics(3, 2, count, elites, hidden, learns, generator).requires_grad_(False)


def linear_rows(count=600, noise=0.1):
    """Return rows of a linear env: one observation never changes, episodes end where another one is above 1."""
    generator = torch.Generator().manual_seed(1)
    observation, action = (torch.randn(count, size, generator=generator) for size in (3, 2))
    observation[:, 2] = 7.0
    change = torch.stack([action[:, 0] * 2, observation[:, 0] + action[:, 1], torch.zeros(count)], -1)
    following = observation + change
    following[:, :2] += noise * torch.randn(count, 2, generator=generator)
    reward = 100 + 10 * observation[:, :1]
    return Rows(observation, action, following, reward, (following[:, :1] > 1).float())


def training(dynamics, **keys):
    return DynamicsTraining(dynamics, ImaginedReplay.Config(**keys), Context.alone("dynamics"))


@pytest.fixture(scope="module")
def learned():
    """An ensemble that has learned the linear env, and what came of it."""
    dynamics = ensemble()
    return dynamics, training(dynamics, dynamics_minibatch_size=64)(linear_rows())


def test_each_member_is_a_network_of_its_own():
    dynamics = ensemble()
    inputs = torch.randn(4, 6, 5, generator=torch.Generator().manual_seed(2))
    outputs = dynamics(inputs)
    for member in range(4):
        hidden = inputs[member]
        for layer in dynamics.layers:
            hidden = hidden @ layer.weight[member] + layer.bias[member]
            hidden = torch.nn.functional.silu(hidden) if layer is not dynamics.layers[-1] else hidden
        assert torch.allclose(outputs.mean[member], hidden[:, :4], atol=1e-6)
    assert (outputs.log_variance < 0.5).all()
    assert (outputs.log_variance > -10).all()


def test_the_loss_is_the_likelihood_with_the_bounds_and_the_cross_entropy():
    dynamics, rows = ensemble(), linear_rows(40)
    learn = training(dynamics)
    dynamics.fit_statistics(*rows[:4])
    inputs = dynamics.inputs_of(rows.observation, rows.action).expand(4, 40, 5)
    targets = dynamics.normalised(dynamics.targets_of(rows.observation, rows.following, rows.reward)).expand(4, 40, 4)
    outputs, following = dynamics(inputs), dynamics.following_of(rows.following).expand(4, 40, 3)
    normal = torch.distributions.Normal(outputs.mean, (outputs.log_variance / 2).exp())
    likelihood = (-2 * normal.log_prob(targets) - torch.log(torch.tensor(2 * torch.pi))).mean((1, 2)).sum()
    logits, terminated = dynamics.ends(inputs, following), rows.terminated.expand(4, 40, 1)
    ends = torch.distributions.Bernoulli(logits=logits).log_prob(terminated)
    expected = likelihood - ends.mean((1, 2)).sum() + 0.01 * 4 * 10.5
    from rlcore_plugin_mbpo.training import _Normalised

    found = learn._loss(_Normalised(inputs, targets, following, terminated))
    assert torch.allclose(found, expected, rtol=1e-5)


def test_it_learns_what_follows_and_how_sure_that_is(learned):
    dynamics, result = learned
    rows = linear_rows()
    assert result.epochs > 5
    assert result.error < 0.35
    imagined = dynamics.imagine(rows.observation, rows.action, torch.Generator().manual_seed(0))
    assert torch.equal(imagined.observation[:, 2], rows.observation[:, 2]), "what never changes stays"
    assert (imagined.observation - rows.following)[:, :2].std() < 0.5, "in two units of noise, of a change of 2"
    assert (imagined.reward - rows.reward).std() < 2, "of a standard deviation of 10"
    agrees = ((imagined.termination > 0).squeeze(-1) == (imagined.observation[:, 0] > 1)).float().mean()
    assert agrees > 0.95, "ends follow from where a step leads, also where that was imagined"


def test_the_elites_have_the_least_errors_on_held_out_rows_and_the_weights_are_the_best_seen():
    dynamics, rows = ensemble(), linear_rows(200)
    learn = training(dynamics, dynamics_lr=0.03, dynamics_patience=3)
    seen, original = [], learn._errors
    learn._errors = lambda held_out: seen.append(original(held_out)) or seen[-1]
    held = []
    learn._learn, inner = lambda train, held_out: held.append(held_out) or inner(train, held_out), learn._learn
    learn(rows)
    errors = original(held[0])
    assert set(errors.argsort()[:2].tolist()) == set(dynamics.elites.tolist())
    least = torch.stack(seen).amin(0)
    assert (errors <= least * 1.011).all(), "within the one percent that counts as progress"
    assert (seen[-1] > errors).any(), "the last epoch was not the best of each"


def test_every_row_is_imagined_by_one_elite(learned):
    """Without variance, what follows is the mean of one of the elites, and all of them are asked alike."""
    dynamics, _ = learned
    certain = copy.deepcopy(dynamics)
    certain.least.fill_(-80)
    certain.largest.fill_(-80)
    rows = linear_rows(101)
    found = certain.imagine(rows.observation, rows.action, torch.Generator().manual_seed(0))
    means = certain(certain.inputs_of(rows.observation, rows.action)).mean * certain.target_scale + certain.target_mean
    near = torch.stack([torch.isclose(found.reward, means[e][:, -1:], atol=1e-3).squeeze(-1) for e in certain.elites])
    assert near.any(0).all()
    assert abs(int(near[0].sum()) - 50) <= 3


def test_the_deviation_is_the_largest_of_all_members_in_the_units_of_the_data(learned):
    dynamics, _ = learned
    rows = linear_rows(10)
    imagined = dynamics.imagine(rows.observation, rows.action, torch.Generator().manual_seed(0), deviation=True)
    spread = (dynamics(dynamics.inputs_of(rows.observation, rows.action)).log_variance / 2).exp()
    scale = torch.cat([rows.following - rows.observation, rows.reward], -1).std(0)
    expected = (spread * dynamics.target_scale).square().sum(-1).sqrt().amax(0)
    assert torch.allclose(imagined.deviation.squeeze(-1), expected)
    assert dynamics.target_scale[2] == 0
    assert torch.allclose(dynamics.target_scale[3], torch.tensor(10.0), rtol=0.2), scale


def test_nothing_of_it_has_gradients_but_while_it_learns(learned):
    dynamics, _ = learned
    assert not any(parameter.requires_grad or parameter.grad is not None for parameter in dynamics.parameters())
