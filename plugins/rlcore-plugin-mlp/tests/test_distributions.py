"""The distributions: their values, and which one an action space gets."""

import gymnasium
import numpy as np
import pytest
import torch
from rlcore_plugin_mlp.distributions import Categorical, Normal, TanhNormal
from rlcore_plugin_mlp.numbered import Bernoulli, MultiCategorical
from rlcore_plugin_mlp.partly_bounded import PartlyBoundedNormal
from rlcore_plugin_mlp.spaces import for_space

from rlcore.errors import ConfigError

CPU = torch.device("cpu")


def test_the_mode_is_the_likeliest_action():
    assert Categorical(4).mode(torch.tensor([[0.0, 3.0, 1.0, 2.0], [5.0, 3.0, 1.0, 2.0]])).tolist() == [1, 0]


def test_logits_may_be_shifted():
    logits, action = torch.tensor([2.0, -1.0, 0.5, 0.0]), torch.tensor(2)
    for shifted in (logits, logits + 100):
        assert Categorical(4).log_prob(shifted, action).item() == pytest.approx(-1.84236, abs=1e-4)


def test_normal_agrees_with_torch():
    parameters, action = torch.tensor([[0.3, -0.7, 0.2, -1.0]]), torch.tensor([[0.1, -0.9]])
    scale = torch.nn.functional.softplus(parameters[:, 2:]) + 1e-4
    reference = torch.distributions.Normal(parameters[:, :2], scale)
    found = Normal(2)
    torch.testing.assert_close(found.log_prob(parameters, action), reference.log_prob(action).sum(-1, keepdim=True))
    torch.testing.assert_close(found.entropy(parameters), reference.entropy().sum(-1, keepdim=True))


def test_a_partly_bounded_normal_is_made_of_the_others():
    low, high = torch.tensor([-1.0, -torch.inf, 0.0]), torch.tensor([3.0, torch.inf, torch.inf])
    whole = PartlyBoundedNormal(low, high)
    parameters, noise = torch.tensor([0.3, -0.7, 0.4, 0.2, -1.0, 0.5]), torch.randn(5, 3)
    parts = [TanhNormal(low[:1], high[:1]), Normal(1), PartlyBoundedNormal(low[2:], high[2:])]
    action = whole.sample(parameters.expand(5, 6), noise)
    log_prob, entropy = torch.zeros(5, 1), torch.zeros(5, 1)
    for index, part in enumerate(parts):
        own, column = parameters[index::3].expand(5, 2), slice(index, index + 1)
        torch.testing.assert_close(part.sample(own, noise[:, column]), action[:, column])
        torch.testing.assert_close(part.mode(own), whole.mode(parameters.expand(5, 6))[:, column])
        torch.testing.assert_close(part.mean(own), whole.mean(parameters.expand(5, 6))[:, column])
        log_prob += part.log_prob(own, action[:, column])
        entropy += part.entropy(own)
    torch.testing.assert_close(whole.log_prob(parameters.expand(5, 6), action), log_prob)
    torch.testing.assert_close(whole.entropy(parameters.expand(5, 6)), entropy)


def test_tanh_normal_agrees_with_torch():
    low, high = torch.tensor([-2.0, 0.0]), torch.tensor([2.0, 3.0])
    parameters, unit = torch.tensor([[0.3, -0.7, 0.2, -1.0]]), torch.tensor([[0.1, -0.9]])
    action = (low + high) / 2 + unit * (high - low) / 2
    scale = torch.nn.functional.softplus(parameters[:, 2:]) + 1e-4
    transforms = [
        torch.distributions.TanhTransform(cache_size=1),
        torch.distributions.AffineTransform((low + high) / 2, (high - low) / 2),
    ]
    base = torch.distributions.Normal(parameters[:, :2], scale)
    reference = torch.distributions.TransformedDistribution(base, transforms)
    expected = reference.log_prob(action).sum(-1, keepdim=True)
    torch.testing.assert_close(TanhNormal(low, high).log_prob(parameters, action), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("low", "high"),
    [(-0.1, 0.3), (-3.0, 3.0), (0.7, 0.9), (-1e-3, 1e3), (-2.0, 1 / 3)],
)
def test_saturated_actions_are_in_the_action_space(low, high):
    space = gymnasium.spaces.Box(np.float32(low), np.float32(high), (1,), np.float32)
    distribution = for_space(space, CPU)
    for location in (-100.0, 100.0):
        action = distribution.mode(torch.tensor([location, 0.0]))
        assert space.contains(action.numpy()), f"{action.item()!r} is outside of [{space.low[0]!r}, {space.high[0]!r}]"


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (gymnasium.spaces.Discrete(3), Categorical),
        (gymnasium.spaces.Box(-1, 1, (2,)), TanhNormal),
        (gymnasium.spaces.Box(-np.inf, np.inf, (2,)), Normal),
        (gymnasium.spaces.Box(0, np.inf, (2,)), PartlyBoundedNormal),
        (gymnasium.spaces.Box(-np.inf, 0, (2,)), PartlyBoundedNormal),
        (gymnasium.spaces.Box(np.array([-1, -np.inf]), np.array([1, np.inf])), PartlyBoundedNormal),
    ],
)
def test_a_space_gets_its_distribution_which_stays_inside(space, expected):
    distribution = for_space(space, CPU)
    assert type(distribution) is expected
    parameters = torch.linspace(-200, 200, 41).unsqueeze(-1).expand(41, distribution.num_parameters)
    noise = distribution.noise((41,), torch.Generator().manual_seed(0))
    for action in (*distribution.sample(parameters, noise), *distribution.mode(parameters)):
        assert space.contains(action.numpy()), action


def test_bounds_in_double_precision_are_kept():
    space = gymnasium.spaces.Box(-0.3, 0.3, (1,), np.float64)
    distribution = for_space(space, CPU)
    for location in (-100.0, 100.0):
        assert space.contains(distribution.mode(torch.tensor([location, 0.0])).numpy().astype(np.float64))


@pytest.mark.parametrize(
    "space",
    [
        gymnasium.spaces.Tuple([gymnasium.spaces.Discrete(3)]),
        gymnasium.spaces.Dict({"a": gymnasium.spaces.Discrete(3)}),
        gymnasium.spaces.Text(5),
        gymnasium.spaces.Box(-1, 1, (2, 2)),
        gymnasium.spaces.Box(0, 10, (2,), np.int64),
        gymnasium.spaces.Box(0, 10, (2,), np.uint8),
        gymnasium.spaces.Box(-1, 1, (2,), np.float16),
        gymnasium.spaces.Box(-3.4e38, 3.4e38, (2,)),
        gymnasium.spaces.Box(1, 1, (2,)),
    ],
)
def test_other_spaces_are_refused_by_name(space):
    with pytest.raises(ConfigError) as error:
        for_space(space, CPU)
    assert f"the action space {space}" in str(error.value)


@pytest.mark.parametrize(
    "space", [gymnasium.spaces.Tuple([gymnasium.spaces.Discrete(3)]), gymnasium.spaces.Box(-1, 1, (2, 2))]
)
def test_a_refusal_names_the_wrapper_to_use(space):
    with pytest.raises(ConfigError, match=r"TransformAction .* wrappers = \["):
        for_space(space, CPU)


NUMBERED = [
    gymnasium.spaces.Discrete(4, start=-2),
    gymnasium.spaces.MultiDiscrete([3, 2, 5]),
    gymnasium.spaces.MultiDiscrete([[3, 2], [2, 4]], start=[[0, 7], [-1, 0]]),
    gymnasium.spaces.MultiDiscrete([2, 3], dtype=np.int32),
    gymnasium.spaces.MultiBinary(3),
    gymnasium.spaces.MultiBinary([2, 2]),
]


@pytest.mark.parametrize("space", NUMBERED, ids=str)
def test_numbered_actions_are_in_their_space_and_their_probabilities_sum_to_one(space):
    distribution = for_space(space, CPU)
    generator = torch.Generator().manual_seed(3)
    parameters = torch.randn(distribution.num_parameters, generator=generator)
    count = 2000
    noise = distribution.noise((count,), generator)
    drawn = distribution.sample(parameters.expand(count, -1), noise)
    for action in (*drawn, distribution.mode(parameters)):
        assert space.contains(action.numpy() if space.shape else action.numpy()[()]), action
    different = drawn.unique(dim=0)
    log_prob = distribution.log_prob(parameters.expand(len(different), -1), different)
    seen = float(log_prob.exp().sum())
    assert 0.9 < seen <= 1 + 1e-5  # those that were never drawn are rare
    likeliest = float(distribution.log_prob(parameters, distribution.mode(parameters)))
    assert float(log_prob.max()) == pytest.approx(likeliest)


def test_several_choices_agree_with_torch():
    sizes, starts = [3, 2, 4], [0, 5, -1]
    parameters = torch.randn(6, 9, generator=torch.Generator().manual_seed(0))
    found = MultiCategorical(sizes, starts)
    action = found.mode(parameters)
    log_prob, entropy = torch.zeros(6, 1), torch.zeros(6, 1)
    for index, (logits, start) in enumerate(zip(parameters.split(sizes, -1), starts, strict=True)):
        reference = torch.distributions.Categorical(logits=logits)
        assert torch.equal(action[:, index], logits.argmax(-1) + start)
        log_prob += reference.log_prob(action[:, index] - start).unsqueeze(-1)
        entropy += reference.entropy().unsqueeze(-1)
    torch.testing.assert_close(found.log_prob(parameters, action), log_prob)
    torch.testing.assert_close(found.entropy(parameters), entropy)


def test_bits_agree_with_torch():
    parameters = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    found, reference = Bernoulli((3,)), torch.distributions.Bernoulli(logits=parameters)
    action = torch.randint(2, (6, 3), generator=torch.Generator().manual_seed(1), dtype=torch.int8)
    torch.testing.assert_close(found.log_prob(parameters, action), reference.log_prob(action.float()).sum(-1, True))
    torch.testing.assert_close(found.entropy(parameters), reference.entropy().sum(-1, True))


@pytest.mark.parametrize(
    "distribution",
    [Normal(2), TanhNormal(torch.tensor([-1.0, -3.0]), torch.tensor([1.0, 5.0]))],
    ids=["normal", "tanh-normal"],
)
def test_the_mean_is_that_of_many_samples(distribution):
    parameters = torch.tensor([0.8, -0.4, 0.5, -1.0])
    noise = distribution.noise((400_000,), torch.Generator().manual_seed(0))
    samples = distribution.sample(parameters.expand(400_000, 4), noise)
    torch.testing.assert_close(distribution.mean(parameters), samples.mean(0), atol=0.01, rtol=0)


@pytest.mark.parametrize("distribution", [Categorical(3), MultiCategorical([2, 1]), Bernoulli((3,))])
def test_discrete_actions_have_no_mean(distribution):
    with pytest.raises(ConfigError, match=r"no mean; use ExplorationType\.DETERMINISTIC"):
        distribution.mean(torch.zeros(1, 3))
