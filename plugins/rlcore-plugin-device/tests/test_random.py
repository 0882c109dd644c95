"""Numbers from counters: each env has its own, whatever is beside it, and they are spread as they should be."""

import pytest
import torch
from rlcore_plugin_device.random import Random, keys_of

CPU = torch.device("cpu")


def drawn(seed=0, envs=64, steps=256, draw=lambda random: random.uniform(0, 1, 4)):
    """Return numbers `[step, env, ...]`."""
    keys = keys_of(seed, envs, CPU)
    return torch.stack([draw(Random(keys, torch.full((envs,), step))) for step in range(steps)])


def test_an_env_has_its_numbers_whatever_is_beside_it():
    assert torch.equal(drawn(seed=5, envs=64)[:, 3], drawn(seed=8, envs=1)[:, 0])


def test_numbers_of_a_step_follow_each_other():
    """Two draws of two are not one draw of two twice, and a draw of four is both."""
    keys, step = keys_of(0, 8, CPU), torch.zeros(8, dtype=torch.int64)
    random = Random(keys, step)
    assert torch.equal(
        torch.cat([random.uniform(0, 1, 2), random.uniform(0, 1, 2)], 1), Random(keys, step).uniform(0, 1, 4)
    )


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**61])
def test_uniform_numbers_fill_the_interval_evenly(seed):
    """A chi-squared test with 255 degrees of freedom: 99.99 % are below 345."""
    numbers = drawn(seed=seed)
    assert numbers.min() >= 0
    assert numbers.max() < 1
    for part in (numbers, numbers[0], numbers[:, 0], numbers[..., 0]):
        counts = torch.histc(part.flatten(), 256, 0, 1)
        expected = part.numel() / 256
        assert ((counts - expected) ** 2 / expected).sum() < 345


def test_neighbours_are_not_alike():
    """Envs with seeds that follow each other, steps that do, and numbers of one step: correlations near zero."""
    numbers = drawn(envs=256) - 0.5
    for first, second in (
        (numbers[:, :-1], numbers[:, 1:]),
        (numbers[:-1], numbers[1:]),
        (numbers[..., :-1], numbers[..., 1:]),
        (numbers, drawn(seed=1000, envs=256) - 0.5),
    ):
        correlation = (first * second).mean() / (1 / 12)
        assert abs(float(correlation)) < 5 / first.numel() ** 0.5


def test_each_bit_is_set_in_half_of_the_numbers():
    words = drawn(draw=lambda random: random.integers(2**31, 4)).flatten()
    for bit in range(31):
        share = ((words >> bit) & 1).double().mean()
        assert abs(float(share) - 0.5) < 5 * 0.5 / len(words) ** 0.5


def test_integers_are_below_their_bound():
    numbers = drawn(draw=lambda random: random.integers(3, 4))
    assert sorted(numbers.unique().tolist()) == [0, 1, 2]


def test_normal_numbers_have_the_moments_of_theirs():
    numbers = drawn(draw=lambda random: random.normal(4)).double()
    assert numbers.isfinite().all()
    root = numbers.numel() ** 0.5
    for power, moment, deviation in ((1, 0, 1), (2, 1, 2**0.5), (3, 0, 15**0.5), (4, 3, 96**0.5)):
        assert abs(float((numbers**power).mean()) - moment) < 5 * deviation / root
