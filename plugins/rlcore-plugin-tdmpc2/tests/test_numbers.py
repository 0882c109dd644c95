"""Two-hot numbers, dropout's masks and the running scale, beside plain ways to write them."""

import math

import pytest
import torch
from rlcore_plugin_mlp.symlog import symexp, symlog
from rlcore_plugin_tdmpc2.dropout import dropout_mask
from rlcore_plugin_tdmpc2.scale import PercentileScale
from rlcore_plugin_tdmpc2.two_hot import TwoHot


def two_hot(number, bins, low, high):
    """Return the two bins of a number as a list, one loop after the other."""
    place = (min(max(math.copysign(math.log1p(abs(number)), number), low), high) - low) * (bins - 1) / (high - low)
    parts = [0.0] * bins
    lower = min(int(place), bins - 2)
    parts[lower], parts[lower + 1] = 1 - (place - lower), place - lower
    return parts


@pytest.mark.parametrize("number", [0.0, 0.3, -0.3, 1.0, 17.0, -250.0, 1e9, -1e9, symexp(torch.tensor(3.0)).item()])
def test_the_cross_entropy_is_that_to_the_two_bins(number):
    logits = torch.randn(21, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    parts = torch.tensor(two_hot(number, 21, -10.0, 10.0), dtype=torch.float64)
    found = TwoHot(21, -10.0, 10.0).cross_entropy(logits, torch.tensor([number], dtype=torch.float64))
    torch.testing.assert_close(found, -(parts * logits.log_softmax(-1)).sum(-1, keepdim=True))


def test_the_least_cross_entropy_stands_for_the_number():
    numbers = torch.tensor([-37.0, -0.4, 0.0, 2.0, 900.0]).unsqueeze(-1)
    code = TwoHot(101, -10.0, 10.0)
    parts = torch.tensor([two_hot(float(number), 101, -10.0, 10.0) for number in numbers])
    torch.testing.assert_close(code.values((parts + 1e-12).log()), numbers, rtol=1e-3, atol=1e-3)


def test_symexp_undoes_symlog():
    numbers = torch.linspace(-1000, 1000, 101, dtype=torch.float64)
    torch.testing.assert_close(symexp(symlog(numbers)), numbers)


@pytest.mark.parametrize("rate", [0.01, 0.3, 0.9])
def test_dropout_leaves_out_each_value_by_chance(rate):
    mask = dropout_mask((4, 500, 100), rate, torch.Generator().manual_seed(1))
    zero = mask == 0
    assert torch.allclose(mask[~zero], torch.tensor(1 / (1 - rate)))
    deviation = math.sqrt(rate * (1 - rate) / mask.numel())
    assert abs(float(zero.double().mean()) - rate) < 4 * deviation
    pairs = float((zero.flatten()[1:] & zero.flatten()[:-1]).double().mean())  # neighbours are independent
    assert abs(pairs - rate**2) < 6 * math.sqrt(rate**2 * (1 - rate**2) / mask.numel())
    assert abs(float(zero[-1].double().mean()) - rate) < 8 * deviation  # up to the end
    assert dropout_mask((2, 0, 5), rate, torch.Generator()).shape == (2, 0, 5)


@pytest.mark.parametrize("count", [1, 2, 7, 256])
def test_the_scale_is_the_running_distance_of_percentiles(count):
    values = torch.randn(count, generator=torch.Generator().manual_seed(count)) * 30
    scale = PercentileScale(0.25)
    scale.update(values)
    distance = torch.quantile(values, 0.95) - torch.quantile(values, 0.05)
    torch.testing.assert_close(scale.value, torch.lerp(torch.tensor(1.0), distance.clamp(min=1), 0.25))
    scale.update(values[:0])
    torch.testing.assert_close(scale.value, torch.lerp(torch.tensor(1.0), distance.clamp(min=1), 0.25))
