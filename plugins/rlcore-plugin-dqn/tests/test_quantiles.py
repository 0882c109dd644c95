"""QR-DQN: the quantile Huber loss by hand, its minimum, its target, its priorities."""

import numpy as np
import pytest
import torch
from rlcore_plugin_dqn.distributional import quantile_huber
from rlcore_plugin_testing import make_run

from rlcore.errors import ConfigError

from .sections import AROUND, C51, CATEGORICAL, QR
from .test_losses import built, made_up, samples


def by_hand(values, target, kappa):
    """Return equation 10 of the paper as it stands, pair by pair."""
    total = 0.0
    for i, value in enumerate(values):
        fraction = (2 * i + 1) / (2 * len(values))
        for other in target:
            error = other - value
            size = abs(error)
            if kappa:
                size = (0.5 * error**2 if size <= kappa else kappa * (size - 0.5 * kappa)) / kappa
            total += abs(fraction - (error < 0)) * size / len(target)
    return total


@pytest.mark.parametrize("kappa", [0.0, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("numbers", [3, 7])
def test_the_quantile_huber_loss_is_that_of_the_paper(kappa, numbers):
    generator = torch.Generator().manual_seed(1)
    quantiles = 2 * torch.randn(6, 5, generator=generator)
    target = 2 * torch.randn(6, numbers, generator=generator)
    fractions = (torch.arange(5) + 0.5) / 5
    found = quantile_huber(quantiles, target, fractions, kappa)
    expected = [by_hand(row, other, kappa) for row, other in zip(quantiles.tolist(), target.tolist(), strict=True)]
    assert found.shape == (6, 1)
    np.testing.assert_allclose(found.squeeze(-1), expected, rtol=1e-5)


@pytest.mark.parametrize("kappa", [0.0, 0.5, 1.0])
def test_its_gradient_is_that_of_its_formula(kappa):
    generator = torch.Generator().manual_seed(2)
    quantiles = (2 * torch.randn(4, 3, generator=generator, dtype=torch.float64)).requires_grad_()
    target = 2 * torch.randn(4, 6, generator=generator, dtype=torch.float64)
    fractions = (torch.arange(3, dtype=torch.float64) + 0.5) / 3
    torch.autograd.gradcheck(lambda value: quantile_huber(value, target, fractions, kappa), quantiles)


def test_its_minimum_are_the_quantiles_of_the_target():
    """Without the Huber loss; of the numbers 0 to 99 they are those between two of them, known to within one."""
    target = torch.arange(100.0).unsqueeze(0)
    fractions = (torch.arange(4) + 0.5) / 4
    quantiles = torch.zeros(1, 4, requires_grad=True)
    for _ in range(300):
        (gradient,) = torch.autograd.grad(quantile_huber(quantiles, target, fractions, 0.0).sum(), quantiles)
        with torch.no_grad():
            quantiles -= 20 * gradient
    torch.testing.assert_close(quantiles.detach()[0], 100 * fractions, atol=1.0, rtol=0)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("steps", [False, True])
@pytest.mark.parametrize("double", [False, True])
def test_qr_dqn_is_the_quantile_loss_to_the_target(double, steps, weights):
    loss, model = built(QR, double=double)
    minibatch = made_up(steps, weights)
    errors, values = [], []
    with torch.no_grad():
        for row, action, reward, discount, best in samples(minibatch, model, double):
            following = model.target_q_values.quantiles(minibatch["next", "observation"][row])[best]
            taken = model.q_values.quantiles(minibatch["observation"][row])[action]
            errors.append(by_hand(taken.tolist(), (reward + discount * following).tolist(), 1.0))
            values.append(float(taken.mean()))
    factor = minibatch["priority_weight"].squeeze(-1).numpy() if weights else 1.0
    found = loss(minibatch)
    assert found["loss_q"].item() == pytest.approx((np.array(errors) * factor).mean(), rel=1e-4)
    assert found["q_value"].item() == pytest.approx(np.mean(values), rel=1e-4)
    np.testing.assert_allclose(found["td_error"].squeeze(-1), errors, rtol=1e-4, atol=1e-5)
    found["loss_q"].backward()
    assert all(parameter.grad is None for parameter in model.target_q_values.parameters())


@pytest.mark.parametrize(
    ("sections", "loss", "words"),
    [
        (AROUND, "dqn:qr-dqn", r"\[loss\] qr-dqn needs quantiles.*\[model\] quantiles = 200"),
        (CATEGORICAL, "dqn:qr-dqn", r"\[loss\] qr-dqn needs quantiles.*leave out atoms"),
        (QR, "dqn:c51", r"\[loss\] c51 needs .*\[model\] atoms = 51.*leave out quantiles"),
    ],
)
def test_a_loss_says_which_distributions_it_needs(sections, loss, words):
    with pytest.raises(ConfigError, match=words):
        make_run(sections={**sections, "loss": {"use": loss}})


def test_a_network_has_one_kind_of_distribution():
    both = {**C51, "model": {**C51["model"], "quantiles": 5}}
    with pytest.raises(ConfigError, match=r"model.*atoms = 11 and quantiles = 5 are two kinds"):
        make_run(sections=both)
