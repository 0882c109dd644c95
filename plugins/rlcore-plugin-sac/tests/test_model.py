"""The batched critics against critics one by one, the squashed actor, and which configs are refused."""

import gymnasium
import numpy as np
import pytest
import torch
from rlcore_plugin_mlp.distributions import TanhNormal
from rlcore_plugin_sac.actors import SquashedSample, squashed_sample
from rlcore_plugin_sac.box import ActionBox, squashed_normal
from rlcore_plugin_sac.critics import Critics, first, frozen, members
from rlcore_plugin_testing import make_run, make_trainer
from torch import nn

from rlcore.errors import ConfigError

from .sections import AROUND, around

LOW, HIGH = torch.tensor([-0.5, -3.0]), torch.tensor([2.0, 3.0])


def box():
    return ActionBox(TanhNormal(LOW, HIGH, log_scale=True))


def critics(norm="none", count=3, activation="relu"):
    made = Critics(count, 3, [8, 6], box(), torch.Generator().manual_seed(1), activation, norm=norm)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for layer in made.norms:
            for parameter in layer.parameters():
                parameter.add_(torch.randn(parameter.shape, generator=generator))
    return made


def one_by_one(made, observation, action, masks=None):
    """Return the values of each critic alone, by modules of torch."""
    activation = {"relu": nn.ReLU(), "tanh": nn.Tanh(), "silu": nn.SiLU()}[made._activation]
    unit = 2 * (action - LOW) / (HIGH - LOW) - 1
    results = []
    for index in range(made.critics):
        hidden = torch.cat([observation, unit], -1)
        for place, layer in enumerate(made.layers):
            hidden = nn.functional.linear(hidden, layer.weight[index].t(), layer.bias[index, 0])
            if place < len(made.layers) - 1:
                hidden = hidden if masks is None else hidden * masks[place][index]
                if made.norms:
                    norm = made.norms[place]
                    scale, shift = norm.scale[index, 0], norm.shift[index, 0]
                    hidden = nn.functional.layer_norm(hidden, hidden.shape[-1:], scale, shift)
                hidden = activation(hidden)
        results.append(hidden)
    return torch.stack(results)


def seen(*shape):
    generator = torch.Generator().manual_seed(3)
    unit = torch.rand(*shape, 2, generator=generator)
    return torch.randn(*shape, 3, generator=generator), LOW + (HIGH - LOW) * unit


@pytest.mark.parametrize("activation", ["relu", "tanh", "silu"])
@pytest.mark.parametrize("norm", ["none", "layer"])
@pytest.mark.parametrize("dropout", [False, True])
def test_the_batched_critics_are_critics_one_by_one(norm, dropout, activation):
    made, (observation, action) = critics(norm, activation=activation), seen(7)
    masks = [(torch.rand(3, 7, size) < 0.5) * 2.0 for size in (8, 6)] if dropout else None
    expected = one_by_one(made, observation, action, masks)
    torch.testing.assert_close(made.values(observation, box().to_unit(action), masks=masks), expected)
    with torch.no_grad():
        torch.testing.assert_close(made.values(observation, box().to_unit(action), masks=masks), expected)
    if not dropout:
        torch.testing.assert_close(made(observation, action), expected)


@pytest.mark.parametrize("activation", ["relu", "tanh", "silu"])
@pytest.mark.parametrize("norm", ["none", "layer"])
def test_values_of_many_are_values_of_each_and_so_are_their_gradients(norm, activation):
    made, observation, actions = critics(norm, activation=activation), seen(5)[0], seen(4, 5)[1]
    found = made.values_of_many(observation, box().to_unit(actions))
    expected = torch.stack([one_by_one(made, observation, action) for action in actions], 1)
    torch.testing.assert_close(found, expected)
    each = [torch.autograd.grad(values.sin().sum(), list(made.parameters())) for values in (found, expected)]
    torch.testing.assert_close(*each)


def test_critics_take_any_leading_shape():
    made, (observation, action) = critics(), seen(4, 5)
    found = made(observation, action)
    assert found.shape == (3, 4, 5, 1)
    torch.testing.assert_close(found[:, 2, 3], made(observation[2, 3], action[2, 3]))


def test_weights_can_be_taken_frozen_of_the_first_and_of_some():
    made, (observation, action) = critics("layer"), seen(7)
    unit = box().to_unit(action).requires_grad_()
    whole = made.values(observation, unit)
    for take, expected in ((frozen, whole), (first, whole[:1]), (members(torch.tensor([2, 0])), whole[[2, 0]])):
        torch.testing.assert_close(made.values(observation, unit, take), expected)
    made.values(observation, unit, frozen).sum().backward()
    assert all(parameter.grad is None for parameter in made.parameters())
    assert unit.grad.abs().min() > 0, "the actor learns through the action"


def test_a_sample_and_its_density_are_those_of_the_distribution():
    """In float64, where the distribution's way over the inverse of tanh is exact enough."""
    generator = torch.Generator().manual_seed(4)
    parameters = 0.5 * torch.randn(50, 4, generator=generator, dtype=torch.float64)
    noise = torch.randn(50, 2, generator=generator, dtype=torch.float64)
    ones = torch.ones(2, dtype=torch.float64)
    distribution = TanhNormal(-ones, ones, log_scale=True)
    unit, log_prob = squashed_sample(parameters, noise)
    torch.testing.assert_close(unit, distribution.sample(parameters, noise))
    torch.testing.assert_close(log_prob, distribution.log_prob(parameters, unit), atol=1e-4, rtol=1e-4)


def test_the_gradients_by_hand_are_those_of_autograd():
    generator = torch.Generator().manual_seed(5)
    parameters = torch.randn(6, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    noise = torch.randn(6, 2, generator=generator, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda given: SquashedSample.apply(given, noise), (parameters,))


@pytest.mark.parametrize("mean", [-50.0, 0.0, 50.0])
@pytest.mark.parametrize("log_std", [-20.0, 2.0])
def test_densities_are_finite_at_the_ends(mean, log_std):
    parameters = torch.tensor([[mean, log_std]], requires_grad=True)
    unit, log_prob = SquashedSample.apply(parameters, torch.tensor([[2.5]]))
    (unit + log_prob).sum().backward()
    assert log_prob.isfinite().all()
    assert parameters.grad.isfinite().all()


def test_the_log_standard_deviations_keep_to_their_bounds():
    sections = around(model={"log_std_min": -1.0, "log_std_max": 0.5})
    actor = make_trainer(sections=sections).model.actor
    with torch.no_grad():
        actor.network.layers[-1].weight.mul_(1e4)
    mean, log_std = actor(torch.randn(100, 3)).chunk(2, -1)
    assert (log_std.min(), log_std.max()) == (-1.0, 0.5)
    assert mean.abs().max() > 1, "means have no bounds"


def test_actions_scale_to_their_bounds_and_back():
    found, unit = box(), torch.tensor([[-1.0, -1.0], [1.0, 1.0], [0.0, 0.5]])
    torch.testing.assert_close(found.from_unit(unit), torch.tensor([[-0.5, -3.0], [2.0, 3.0], [0.75, 1.5]]))
    torch.testing.assert_close(found.to_unit(found.from_unit(unit)), unit)


@pytest.mark.parametrize("bounds", [(-1.0, 1.0), (0.1, 0.3), (-1e-3, 1e5)])
def test_no_action_is_outside(bounds):
    space = gymnasium.spaces.Box(*bounds, (2,), np.float32)
    found = ActionBox(squashed_normal(space, torch.device("cpu")))
    for action in found.from_unit(torch.rand(1000, 2) * 2 - 1):
        assert space.contains(action.numpy())


@pytest.mark.parametrize("actions", ["discrete", "unbounded"])
def test_an_action_space_that_cannot_be_served_is_refused(actions):
    with pytest.raises(ConfigError, match=r"\[model\] actor-critic needs actions in a Box of floats"):
        make_run(sections={**AROUND, "env": {"use": "testing:toy", "actions": actions}})


@pytest.mark.parametrize(
    "space",
    [gymnasium.spaces.Box(-1, 1, (2, 2), np.float32), gymnasium.spaces.Box(0, 9, (2,), np.int64)],
    ids=["two dimensions", "integers"],
)
def test_a_box_that_cannot_be_served_is_refused(space):
    with pytest.raises(ConfigError, match=r"\[model\] actor-critic needs actions in a Box of floats"):
        squashed_normal(space, torch.device("cpu"))


def test_bounds_of_the_log_standard_deviation_that_are_none_are_refused():
    with pytest.raises(ConfigError, match="log_std_min"):
        make_run(sections=around(model={"log_std_min": 2.0}))


def test_targets_begin_as_copies_that_are_not_trained():
    model = make_trainer(sections=AROUND).model
    for source, target in zip(model.critics.parameters(), model.target_critics.parameters(), strict=True):
        assert torch.equal(source, target)
        assert source is not target
        assert not target.requires_grad


def test_critics_begin_different():
    weight = make_trainer(sections=AROUND).model.critics.layers[0].weight
    assert not torch.equal(weight[0], weight[1])
