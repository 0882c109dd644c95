"""Distributions of the return: their projection, and the target with the entropy inside."""

import numpy as np
import pytest
import torch
from rlcore_plugin_flashsac.categorical import of_least_mean, project, soft_returns


def one_by_one(returns, probs, support):
    """Return projected probabilities in plain loops (C51, algorithm 1)."""
    projected = np.zeros_like(probs)
    distance = support[1] - support[0]
    for sample, atom in np.ndindex(*probs.shape):
        place = (np.clip(returns[sample, atom], support[0], support[-1]) - support[0]) / distance
        lower, upper = int(np.floor(place)), int(np.ceil(place))
        if lower == upper:
            projected[sample, lower] += probs[sample, atom]
        else:
            projected[sample, lower] += probs[sample, atom] * (upper - place)
            projected[sample, upper] += probs[sample, atom] * (place - lower)
    return projected


@pytest.fixture
def drawn():
    generator = torch.Generator().manual_seed(0)
    support = torch.linspace(-5, 5, 11)
    returns = torch.randn(7, 11, generator=generator) * 4
    returns[0] = support  # on the atoms, the ends among them
    return returns, torch.randn(7, 11, generator=generator).softmax(-1), support


def test_the_projection_splits_between_neighbours(drawn):
    np.testing.assert_allclose(project(*drawn), one_by_one(*(each.numpy() for each in drawn)), atol=1e-6)


def test_the_pass_of_the_compiler_is_the_same(drawn, monkeypatch):
    eager = project(*drawn)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    torch.testing.assert_close(project(*drawn), eager, atol=1e-6, rtol=1e-5)


def test_the_entropy_is_inside_what_follows_and_ends_with_the_episode():
    support = torch.linspace(-2, 2, 5)
    reward, cost = torch.tensor([[0.5], [0.5]]), torch.tensor([[0.25], [0.25]])
    going = torch.tensor([[True], [False]])
    returns = soft_returns(reward, 0.9, going, support, cost)
    np.testing.assert_allclose(returns[0], 0.5 + 0.9 * (np.linspace(-2, 2, 5) - 0.25), rtol=1e-6)
    np.testing.assert_allclose(returns[1], np.full(5, 0.5), rtol=1e-6)


def test_the_critic_with_the_least_mean_is_asked_for_each_sample():
    support = torch.tensor([0.0, 1.0])
    probs = torch.tensor([[[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.6, 0.4]]])
    chosen = of_least_mean(probs.log(), support)
    np.testing.assert_allclose(chosen, [[0.9, 0.1], [0.6, 0.4]], rtol=1e-6)
